"""Find the runs of recipes that reported every command that was carried out as a success, and mark them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import QuerySet

from evalhub.lib.limits import LARGEST_RECORD
from evalhub.teams.models import Project
from evaluators.model import Transcript
from evaluators.tool_use.calls import calls
from evaluators.tool_use.diagnosis import Thresholds
from evaluators.tool_use.interaction import RULES_VERSION, Interaction
from runs.engine.stored_trials.recomputing import compare_recomputed
from runs.engine.stored_trials.recounting import MISREAD, RECOUNTED, store_interaction
from runs.engine.stored_trials.stored_output import content_of, definition_of
from runs.models import Artifact, Run, TranscriptRecord, Trial
from runs.models.run import RunState
from runs.models.trial import TrialState
from runs.results.counting import MISREAD_BY
from runs.results.diagnosis_thresholds import cut_offs
from runs.results.files.artifacts import StoredFileUnavailable
from runs.results.rollups import write_rollups

PROBLEM = "An old recipe reported failed commands as successes, so tool use is not available. Run it again."
_RECIPES = re.compile(r"\b(?:gemini-events|acp-events)\b")
_STREAM = re.compile(rb'"type": ?"tool_result".{0,400}"status": ?"|"method": ?"session/update"')
"""What Gemini CLI, and agents that speak ACP, print."""


@dataclass
class Marked:
    """What was found."""

    runs: list[int] = field(default_factory=list)
    """Runs that were marked, oldest first."""
    trials: int = 0
    compared: int = 0
    """Runs that were compared with their baseline again."""


def mark_old_recipes(
    project: Project | None = None, progress: Callable[[int, int], None] = lambda done, of: None
) -> Marked:
    """Mark the trials that an old recipe reported: their layer 1 is not available and in no comparison.

    Their outcomes stay, and are not compared where a gate reads the commands. One transaction a run; `progress` gets the
    runs done and their number.
    """
    keys = list(_closed_runs(project).values_list("pk", flat=True))
    done = Marked()
    for at, key in enumerate(keys, 1):
        with transaction.atomic():
            run = (
                Run.objects.select_for_update(of=("self",))
                .select_related("target", "target_version")
                .get(pk=key)
            )
            if trials := _mark_run(run):
                done.runs.append(key)
                done.trials += trials
                done.compared += compare_recomputed(run, RECOUNTED, RULES_VERSION)
        progress(at, len(keys))
    return done


def _closed_runs(project: Project | None) -> QuerySet[Run]:
    runs = Run.objects.filter(target__provider="cli", state__in=(RunState.FINISHED, RunState.CANCELLED))
    return (runs.filter(project=project) if project else runs).order_by("pk")


def _mark_run(run: Run) -> int:
    """Mark the trials of a run if an old recipe reported any of them; return how many."""
    finished = Trial.objects.filter(run=run, state=TrialState.FINISHED, detail__interaction__isnull=False)
    trials = list(finished.exclude(detail__interaction__has_key=MISREAD).order_by("pk"))
    records = TranscriptRecord.objects.filter(trial__in=trials)
    transcripts = {each.trial_id: each.unpack() for each in records}
    suspects = [trial for trial in trials if _takes_carried_out_for_success(transcripts.get(trial.pk))]
    names_recipe = _RECIPES.search(str(definition_of(run).get("command_template", ""))) is not None
    if not suspects or not (names_recipe or any(map(_printed_stream, suspects))):
        return 0
    limits = cut_offs(run.project if run.project_id else None, before=run.pk).limits
    for trial in trials:
        _mark(trial, transcripts.get(trial.pk, Transcript()), limits)
    write_rollups(run)
    return len(trials)


def _takes_carried_out_for_success(transcript: Transcript | None) -> bool:
    """Return whether a command's result is a success without an exit code, as no recipe writes any more."""
    return any(
        call.event.command is not None
        and call.result is not None
        and call.result.success is True
        and call.result.exit_code is None
        for call in calls(transcript.events if transcript else ())
    )


def _printed_stream(trial: Trial) -> bool:
    """Return whether the agent printed a stream that the recipes read, also if they have another name."""
    artifact = Artifact.objects.filter(trial=trial, name="transcript", size__lte=LARGEST_RECORD).first()
    if artifact is None:
        return False
    try:
        return _STREAM.search(content_of(artifact)) is not None
    except StoredFileUnavailable:
        return False


def _mark(trial: Trial, transcript: Transcript, limits: Thresholds) -> None:
    """Take a trial's layer 1 out of every figure. Requires a transaction."""
    before = trial.detail["interaction"]
    if before.get("source") == "recorded":
        # The record is right; only what the events said beside it is not.
        remaining = {name: value for name, value in before.items() if name != "reported"}
        trial.detail = {**trial.detail, "interaction": {**remaining, MISREAD: before.get("reported")}}
        trial.save(update_fields=["detail"])
        return
    interaction = Interaction(completed=bool(trial.completed), problem=PROBLEM)
    about = {MISREAD: before, "decided_by": MISREAD_BY}
    store_interaction(trial, transcript, False, interaction, limits, about)

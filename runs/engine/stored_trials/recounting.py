"""Count stored trials' commands again by the current rules: layer 1 from raw output, else from events."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from evalhub.lib.limits import LARGEST_RECORD
from evalhub.teams.models import Project
from evaluators.grading.assertions import calls_of_transcript
from evaluators.model import Transcript
from evaluators.patterns import pattern_budget
from evaluators.tool_use.attempts import attempts
from evaluators.tool_use.diagnosis import Thresholds, diagnose, error_messages
from evaluators.tool_use.exposure import quoted_events
from evaluators.tool_use.interaction import RULES_VERSION, Interaction, analyse
from evaluators.tool_use.interaction import scores as interaction_scores
from evaluators.tool_use.recorded_calls import RecordedCall, count_lost_calls, read_call_record
from evaluators.tool_use.tool import Tool
from evaluators.tool_use.waste import waste_scores
from runs.db import statements
from runs.engine.assess import MOST_MESSAGES
from runs.engine.stored_trials.recomputing import (
    BATCH,
    Recomputed,
    RunRecomputed,
    batches,
    closed_runs_behind,
    compare_recomputed,
    recompute_runs,
)
from runs.engine.stored_trials.stored_output import agent_parser, content_of, read_stored
from runs.engine.tool.tool_recording import RECORD
from runs.models import Artifact, CommandRecord, Run, TranscriptRecord, Trial
from runs.models.run import Trigger
from runs.models.trial import TrialState, command_row, json_of, scores_json, transcript_row
from runs.results.counting import decided_by
from runs.results.diagnosis_thresholds import cut_offs
from runs.results.files.artifacts import StoredFileUnavailable
from runs.results.rollups import write_rollups
from runs.results.search.search_index import index_trials
from scenarios.models import SESSIONS

RECOUNTED = "recounted"
"""The run's version of the rules."""
LAYER, COMPLETED = "interaction", "completed"
MISREAD = "misread"
"""Metrics of a trial that an old recipe reported (`old_recipes`), under this name."""


def runs_to_recount(project: Project | None = None) -> QuerySet[Run]:
    """Return the closed runs whose commands are counted by older rules, oldest first."""
    return closed_runs_behind(RECOUNTED, RULES_VERSION, project)


def recount(
    project: Project | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
    batch_done: Callable[[], None] = lambda: None,
    batch: int = BATCH,
) -> Recomputed:
    """Count the commands of every run behind again; `progress` gets the runs done and their number.

    One transaction for each batch of trials and one for the rollups and comparisons of a run, so that an interruption
    loses at most a batch. Outcomes and composites stay as recorded.
    """
    keys = list(runs_to_recount(project).values_list("pk", flat=True))
    return recompute_runs(keys, lambda run: _recount_run(run, batch, batch_done), progress)


def _recount_run(run: Run, batch: int, batch_done: Callable[[], None]) -> RunRecomputed:
    """Count a run's trials again."""
    counted = unchanged = 0
    limits = cut_offs(run.project if run.project_id else None, before=run.pk).limits
    for keys in batches(_trials(run).values_list("pk", flat=True), batch):
        with transaction.atomic():
            rows = (
                _trials(run)
                .filter(pk__in=keys)
                .select_for_update(of=("self",))
                .select_related("scenario_version")
            )
            for trial in rows:
                reading = _counted_again(run, trial)
                if reading is None:
                    unchanged += 1
                else:
                    store_interaction(trial, *reading, limits, _note_counting(trial))
                    counted += 1
        batch_done()
    with transaction.atomic():
        locked = Run.objects.select_for_update(of=("self",)).select_related("project").get(pk=run.pk)
        write_rollups(locked)
        locked.recounted = RULES_VERSION
        locked.save(update_fields=["recounted"])
        compared = compare_recomputed(locked, RECOUNTED, RULES_VERSION)
    return RunRecomputed(counted, unchanged, compared)


def _trials(run: Run) -> QuerySet[Trial]:
    """Return the run's measured trials whose commands are counted by older rules."""
    older = Q(detail__interaction__rules__isnull=True) | Q(detail__interaction__rules__lt=RULES_VERSION)
    measured = Trial.objects.filter(run=run, state=TrialState.FINISHED, detail__interaction__isnull=False)
    return measured.filter(older).order_by("pk")


def _counted_again(run: Run, trial: Trial) -> tuple[Transcript, bool, Interaction] | None:
    """Return a trial's transcript, whether it was read anew, and its metrics; None if it keeps its figures."""
    stored = TranscriptRecord.objects.filter(trial=trial).first()
    before = trial.detail.get("interaction") or {}
    if MISREAD in before:
        return None
    is_recorded = before.get("source") == "recorded" or before.get("recorded")
    record, lost = _record(trial) if is_recorded else (None, 0)
    if stored is None or _is_reduced(run, trial) or (before.get("source") == "recorded" and record is None):
        return None
    tool = _tool(run, trial)
    if tool is None and run.trigger == Trigger.IMPORT:
        # The results may have named a tool that nothing stored names.
        return None
    transcript = stored.unpack()
    again = None if tool and tool.mcp else read_stored(trial, agent_parser(run))
    is_anew = again is not None and again != transcript
    if again is not None:
        transcript = again
    if not transcript.events and not transcript.text and record is None:
        return None
    with pattern_budget():
        interaction = analyse(transcript, tool, completed=bool(trial.completed), record=record, lost=lost)
    return transcript, is_anew, interaction


def _is_reduced(run: Run, trial: Trial) -> bool:
    """Return whether only some events are stored: of people's sessions, unless whole, those of the tool's commands."""
    session = trial.detail.get("session") or {}
    return run.suite.format == SESSIONS and not session.get("whole")


def _record(trial: Trial) -> tuple[tuple[RecordedCall, ...] | None, int]:
    """Return the recorded executions of the tool, None where they aren't stored or can't be read, and how many were lost."""
    artifact = Artifact.objects.filter(trial=trial, name=RECORD, size__lte=LARGEST_RECORD).first()
    if artifact is None:
        return None, 0
    try:
        content = content_of(artifact)
    except (StoredFileUnavailable, ValueError):
        return None, 0
    return read_call_record(content), count_lost_calls(content)


def _tool(run: Run, trial: Trial) -> Tool | None:
    """Return the scenario's tool, with the pattern of the run where it has none."""
    tool = trial.scenario_version.spec.criteria.tool
    pattern = str(run.fingerprint.get("command_pattern", ""))
    if not pattern or (tool and (tool.mcp or tool.command_pattern)):
        return tool
    return (tool or Tool()).model_copy(update={"command_pattern": pattern})


def _note_counting(trial: Trial) -> dict[str, str]:
    """Return by which counting the trial's gates were decided, which are not run again."""
    before = trial.detail["interaction"]
    return {"decided_by": before.get("decided_by") or decided_by(before)}


def store_interaction(
    trial: Trial,
    transcript: Transcript,
    is_anew: bool,
    interaction: Interaction,
    limits: Thresholds,
    about: dict[str, Any],
) -> None:
    """Replace a trial's layer 1; `about` is stored with the metrics. Requires a transaction."""
    passed = trial.outcome == "pass"
    scores = [
        *(each for each in interaction_scores(interaction) if each.name != COMPLETED),
        *waste_scores(transcript, interaction.commands, passed=passed),
    ]
    others = [row for row in trial.scores if row["layer"] != LAYER]
    completed = [row for row in trial.scores if row["layer"] == LAYER and row["name"] == COMPLETED]
    trial.scores = [*scores_json(tuple(scores)), *completed, *others]
    messages = error_messages(transcript, interaction)
    trial.detail = {
        **trial.detail,
        "interaction": {**interaction.as_json(), **about},
        "attempts": json_of(attempts(transcript, interaction.commands)),
        "diagnosis": json_of(
            diagnose(
                interaction,
                limits,
                messages,
                failed=bool(trial.outcome) and not passed,
                quoted=quoted_events(trial.detail.get("exposure")),
            )
        ),
        "messages": json_of(dict(islice(messages.items(), MOST_MESSAGES))),
        **({"tools_called": [call.name for call in calls_of_transcript(transcript)]} if is_anew else {}),
    }
    trial.save(update_fields=["scores", "detail"])
    CommandRecord.objects.filter(trial=trial).delete()
    statements.insert(CommandRecord, [command_row(trial.pk, each) for each in interaction.commands])
    if is_anew:
        # The commands name events by their place.
        row: dict[str, Any] = transcript_row(trial.pk, transcript)
        TranscriptRecord.objects.filter(trial=trial).update(
            **{name: value for name, value in row.items() if name != "trial"}
        )
        index_trials([trial.pk])

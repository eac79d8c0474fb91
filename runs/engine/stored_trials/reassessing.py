"""Judge or grade a run's stored trials again, on a worker or by a command."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from evalhub.lib.storable_text import make_storable
from evalhub.teams import audit
from evaluators.grading.evaluate import (
    LAYERS,
    Criteria,
    assertions_layer,
    evaluators_layer,
    gates_layer,
    judge_layer,
    scripts_layer,
)
from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.gates.base_gate import NOT_RUN
from evaluators.grading.judges.rubric import DEFAULT_THRESHOLD, JudgeCriteria, RubricCriteria
from evaluators.model import Complete, Score, Usage, Workspace
from runs.compare.comparison import outcome_of
from runs.db.disk import CannotStore, cannot_store, check_room_for_commands
from runs.db.retry import retry_when_lost
from runs.db.transactions import request_job, write_transaction
from runs.engine.context import RunContext, load_run
from runs.engine.judges import inform, judge_target, make_judge
from runs.engine.proof_agents import JudgeBudget
from runs.engine.recording import judging_row
from runs.engine.stored_trials.reassessment_plan import (
    KEPT_WORKSPACE,
    estimate_reassessment,
    find_assessable,
    need_workspace,
    ready_rubric,
    without_workspace,
)
from runs.engine.workspace.kept_files import changed_paths
from runs.engine.workspace.workspace import PostResult, trial_folder
from runs.errors import ProviderError, RequestError
from runs.launch.selection import check_judge
from runs.models import Job, JudgingRecord, ReassessedTrial, Reassessment, Run, Trial
from runs.models.run_options import RunOptions
from runs.models.trial import scores_json
from runs.results.files.artifacts import StoredFileUnavailable, open_stored
from runs.results.files.workspace_archive import UNREADABLE, kept_files
from runs.review.calibrations import calibrated_versions
from runs.targets.definitions import definition_hash
from runs.workers import jobs, wakeups
from scenarios.formats.parsed import FixtureFile
from scenarios.models import ScenarioVersion

GRADED = (gates_layer, assertions_layer, scripts_layer)
GRADED_NAMES = ("gates", "assertions", "scripts")


def request_reassessment(
    run: Run,
    kind: str,
    *,
    by: User | None,
    judge_model: str = "",
    rubric: str = "",
    max_usd: float | None = None,
    wakes: bool = True,
) -> Reassessment:
    """Store a request and wake a worker. Raises `RequestError` if there is nothing to assess."""
    if run.is_open:
        raise RequestError(f"Run {run.pk} is in progress. Assess it again after it has finished.")
    chosen = ready_rubric(rubric)
    if max_usd is not None and not 0 < max_usd < 1_000_000:
        raise RequestError("The budget must be more than 0 dollars.")
    check_judge(run.project, RunOptions(judge_model=judge_model.strip()))
    plan = estimate_reassessment(run, kind, chosen)
    if not plan.trials:
        raise RequestError(f"Run {run.pk} has no trials with a stored transcript.")
    if kind == Reassessment.Kind.JUDGE and not plan.calls:
        raise RequestError(f"The scenarios of run {run.pk} have no judge. Choose a rubric.")
    known = by if getattr(by, "pk", None) else None
    judges = kind == Reassessment.Kind.JUDGE
    judge = judge_target(run, judge_model.strip()) if judge_model.strip() else None
    reassessment, job = _create_once(
        Reassessment(
            run=run,
            kind=kind,
            judge_model=judge_model.strip(),
            judge_sha256=definition_hash(judge.definition) if judge else "",
            rubric=chosen.model_dump(mode="json") if chosen else None,
            max_usd=max_usd,
            by=known,
        )
    )
    audit.append_event(
        run.project, known, "run.judge-again" if judges else "run.grade-again", f"run {run.pk}"
    )
    if wakes:
        wakeups.wake_for_job(job)
    return reassessment


def _create_once(reassessment: Reassessment) -> tuple[Reassessment, Job]:
    """Store a request. Raises `RequestError` while an equal one is pending, because judges cost."""
    with write_transaction():
        # Locked, because two people may press at once.
        Run.objects.select_for_update().only("pk").get(pk=reassessment.run_id)
        pending = Reassessment.pending(now=timezone.now()).filter(
            run=reassessment.run_id, kind=reassessment.kind
        )
        for judge_model, rubric in pending.values_list("judge_model", "rubric"):
            if (judge_model, rubric) == (reassessment.judge_model, reassessment.rubric):
                done = "judged" if reassessment.kind == Reassessment.Kind.JUDGE else "graded"
                raise RequestError(
                    f"Run {reassessment.run_id} is already being {done} again. Wait for the results."
                )
        reassessment.save()
        return reassessment, request_job(
            Job.Kind.REASSESSMENT, reassessment.pk, expires=reassessment.created + reassessment.PATIENCE
        )


def reassess(job: Job) -> None:
    """Judge or grade a run's stored trials again, as requested; a failure becomes the request's result."""
    reassessment = (
        Reassessment.objects.select_related("run__project").filter(pk=job.subject, finished=None).first()
    )
    if reassessment is None:
        return
    reassessment.error = "The worker was interrupted. Request it again."
    judge: JudgeBudget | None = None
    try:
        context = load_run(reassessment.run_id)
        judge = _judge(reassessment, context) if reassessment.kind == Reassessment.Kind.JUDGE else None
        rows = find_assessable(reassessment.run).select_related("scenario_version", "transcript")
        for key in list(rows.values_list("pk", flat=True)):
            if judge and judge.why_stopped:
                raise RequestError(f"{judge.why_stopped} The other trials were not judged.")
            trial = retry_when_lost(partial(rows.get, pk=key))
            assessed = (
                _judge_again(reassessment, trial, context, judge) if judge else _grade_again(trial, context)
            )
            _store(job, reassessment, trial, assessed)
        if judge and judge.is_unpriced:
            raise RequestError(judge.why_stopped)
        reassessment.error = ""
    except (ProviderError, RequestError, CannotStore, OSError) as error:
        problem = cannot_store(error)
        if problem is None and isinstance(error, OSError):
            raise
        reassessment.error = make_storable(str(problem or error))
    finally:
        ended = {
            "error": reassessment.error,
            "finished": timezone.now(),
            "cost_usd": judge.spent if judge else 0.0,
        }
        # What was thought lost has ended already.
        held = Reassessment.objects.filter(pk=reassessment.pk, finished=None)
        retry_when_lost(lambda: held.update(**ended))


class _Unlimited(JudgeBudget):
    """A judge without a budget, whose cost is counted where it is known."""

    def __call__(self, request: Any) -> Any:
        answer = self.ask(request)
        self.spent += answer.cost_usd or 0.0
        return answer


def _judge(reassessment: Reassessment, context: RunContext) -> JudgeBudget:
    changes = {
        "judge": True,
        **({"judge_model": reassessment.judge_model} if reassessment.judge_model else {}),
    }
    options = context.options.model_copy(update=changes)
    ask: Complete = make_judge(context.run, context.target, options, context.variables)
    return JudgeBudget(ask, reassessment.max_usd) if reassessment.max_usd else _Unlimited(ask, float("inf"))


def _evidence(
    trial: Trial,
    criteria: Criteria,
    context: RunContext,
    complete: Complete | None,
    workspace: Workspace | None,
) -> TrialEvidence:
    usage = Usage(trial.tokens_in or 0, trial.tokens_out or 0) if trial.tokens_in is not None else None
    return TrialEvidence(
        transcript=trial.transcript.unpack(),
        workspace=workspace,
        tool=context.criteria_of(criteria).tool,
        key=trial.scenario_version.spec.key,
        prompt=str(trial.scenario_version.content.get("prompt", "")),
        answer=trial.answer,
        exit_code=trial.exit_code,
        timed_out=trial.timed_out,
        seconds=trial.seconds or 0.0,
        usage=usage,
        cost_usd=trial.cost_usd,
        complete=complete,
        model=context.model,
        seed=context.seed,
        snapshot=context.options.snapshot,
        changed_files=tuple(changed_paths(trial.detail.get("workspace", {}))),
        hides_skill=context.options.lift,
    )


@dataclass(frozen=True)
class _Assessed:
    """A trial's scores after it was judged or graded again."""

    rows: list[dict[str, Any]]
    note: str
    found: Sequence[Score] = ()
    """New scores with their judgings."""
    graded_by: ScenarioVersion | None = None
    decides: bool = True
    """Whether the scores say an outcome."""


def _judge_again(
    reassessment: Reassessment, trial: Trial, context: RunContext, judge: Complete | None
) -> _Assessed:
    criteria = trial.scenario_version.spec.criteria
    criteria = criteria.model_copy(update={"judge": _judge_criteria(reassessment, criteria)})
    evidence = _evidence(trial, criteria, context, judge, None)
    remaining = [row for row in trial.scores if row["layer"] != "judge"]
    scores: tuple[Score, ...] = ()
    note = ""
    if any(each.asks_model for each in criteria.evaluators):
        if any(each.needs_workspace for each in criteria.evaluators):
            note = "Some evaluators need the workspace, so their judges were not asked again."
        else:
            remaining = [row for row in remaining if row["layer"] != "evaluators"]
            scores = evaluators_layer(criteria, evidence, ())
    stored = tuple(Score(row["layer"], row["name"], passed=row.get("passed")) for row in remaining)
    judged = judge_layer(criteria, evidence, stored)
    if context.run.project.only_calibrated_judges:
        judged = inform(judged, calibrated_versions(context.run.project))
    scores += judged
    return _Assessed([*remaining, *scores_json(scores)], note, scores)


def _judge_criteria(reassessment: Reassessment, criteria: Criteria) -> JudgeCriteria | None:
    if reassessment.rubric is None:
        return criteria.judge
    rubric = RubricCriteria.model_validate(reassessment.rubric)
    if criteria.judge is not None and criteria.judge.enabled:
        return criteria.judge.model_copy(update={"rubric": rubric})
    return JudgeCriteria(rubric=rubric, pass_threshold=DEFAULT_THRESHOLD)


def _grade_again(trial: Trial, context: RunContext) -> _Assessed:
    newest = _newest(trial.scenario_version)
    criteria = newest.spec.criteria
    reason = ""
    try:
        files, reason = _workspace_files(trial)
    except StoredFileUnavailable as error:
        files, reason = None, str(error)
    except UNREADABLE:
        files, reason = None, "The stored workspace is damaged."
    posted: tuple[PostResult, ...] = ()
    folder_of = nullcontext(None) if files is None else trial_folder(settings.WORK_DIR, files)
    with folder_of as folder:
        workspace = None
        if folder is not None:
            folder.write_record(trial.transcript.unpack().text.encode(), None)
            workspace = context.workspace(folder, criteria.tool, scenario=newest.spec.key)
            # The workspace was stored before them.
            posted = workspace.run_post(newest.spec.post)
        evidence = _evidence(trial, criteria, context, None, workspace)
        scores: tuple[Score, ...] = ()
        for layer in LAYERS:
            if layer in GRADED:
                scores += layer(criteria, evidence, scores)
        if any(score.passed is False for score in scores):
            # A command may have failed because its writes did.
            check_room_for_commands()
    remaining = [row for row in trial.scores if row["layer"] not in GRADED_NAMES]
    rows = [*remaining, *scores_json(scores)]
    blind = [score for score in scores if score.message == NOT_RUN]
    if not blind:
        note = " ".join(each.note for each in posted if each.note)
        return _Assessed(rows, note, graded_by=newest)
    named = ", ".join(need_workspace(criteria))
    note = f"{reason} {len(blind)} of {len(scores)} checks need it ({named}), so this trial keeps its stored scores."
    return _Assessed(rows, note, decides=False)


def _newest(version: ScenarioVersion) -> ScenarioVersion:
    """Return the scenario in the suite's newest version; its own version if it was retired."""
    suite = version.scenario.suite.versions.first()
    newest = suite and suite.scenario_versions.filter(scenario=version.scenario_id).first()
    return newest or version


def _workspace_files(trial: Trial) -> tuple[tuple[FixtureFile, ...] | None, str]:
    """Return the files of a trial's stored workspace, or None and the reason."""
    artifact = trial.artifacts.filter(name=KEPT_WORKSPACE).first()
    if reason := without_workspace(trial.detail.get("workspace"), artifact is not None):
        return None, reason
    if artifact is None:
        return (), ""
    with open_stored(artifact.sha256) as archive:
        files = kept_files(archive, lambda _: True)
        return tuple(FixtureFile(file.path, content, file.executable) for file, content in files), ""


def _store(job: Job, reassessment: Reassessment, trial: Trial, assessed: _Assessed) -> None:
    """Store one trial's new scores and judgings, which don't count yet."""
    outcome = outcome_of(trial, assessed.rows)["outcome"] if assessed.decides else ""

    def store() -> ReassessedTrial:
        with write_transaction():
            jobs.hold_job(job)
            stored = ReassessedTrial.objects.create(
                reassessment=reassessment,
                trial=trial,
                scores=assessed.rows,
                outcome=outcome,
                note=make_storable(assessed.note),
                graded_by=assessed.graded_by,
            )
            judgings = []
            for score in assessed.found:
                if score.judging is not None:
                    values = judging_row(trial.pk, score, counts=False)
                    judgings.append(JudgingRecord.objects.create(trial_id=values.pop("trial"), **values))
            stored.judgings.set(judgings)
        return stored

    earlier = ReassessedTrial.objects.filter(reassessment=reassessment, trial=trial)
    retry_when_lost(store, committed=earlier.first)

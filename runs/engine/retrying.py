"""Reopen closed runs: to run errors or cancelled trials again, or to give two compared runs further trials.

Earlier attempts of a trial are kept. Further trials are a round of both runs, which is prepared again and counts
in their comparison alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, F, Max, Q, QuerySet
from django.utils import timezone

from evalhub.teams import audit
from evaluators.statistics.looks import first_size
from runs.db import statements
from runs.db.transactions import write_transaction
from runs.engine.recording import NOT_STARTED, RETRY_FAILED
from runs.engine.retesting import add_trials
from runs.errors import NotRetryable, RequestError
from runs.models import (
    Artifact,
    BatchAnswer,
    CommandRecord,
    Job,
    JudgingRecord,
    Launch,
    ProviderBatch,
    ReassessedTrial,
    Run,
    SearchEntry,
    TranscriptRecord,
    Trial,
    TrialAttempt,
)
from runs.models.job import BatchState
from runs.models.run import Preset, RunState, Trigger
from runs.models.run_options import RunOptions
from runs.models.trial import TrialState
from runs.results import spending
from runs.results.spending import month_spent_sentence
from runs.workers import claims, wakeups
from runs.workers.labels import refuse_missing_labels

_LONGEST_NAME = Artifact._meta.get_field("name").max_length
_ATTEMPT = ("state", "error", "error_kind", "worker", "seconds", "exit_code", "cost_usd", "detail")
_CANCELLED = Q(state=TrialState.CANCELLED)
_BECAUSE_OF_ERRORS = reduce(or_, (Q(error__startswith=each) for each in (NOT_STARTED, RETRY_FAILED)))


class RetryKind(StrEnum):
    """Which trials run again: those with errors, or the cancelled ones."""

    RETRY = "retry"
    RESUME = "resume"


def _is_retried(run: Run, kind: RetryKind) -> Q:
    """Return the condition of the trials of a closed run that would run again.

    A retry includes trials that were cancelled because others could not start, and where a run has those errors, a
    resumption leaves them to it.
    """
    if kind == RetryKind.RETRY and not run.error:
        return Q(state=TrialState.FINISHED, outcome="error") | (_CANCELLED & _BECAUSE_OF_ERRORS)
    return _CANCELLED & ~_BECAUSE_OF_ERRORS if run.errors and not run.error else _CANCELLED


def trials_to_run(run: Run, kind: RetryKind) -> QuerySet[Trial]:
    """Return the trials of a closed run that would run again; those of a retest don't, which is made once."""
    return Trial.objects.filter(_is_retried(run, kind), run=run, round=0)


def retryable_counts(run: Run) -> dict[str, int]:
    """Return the number of trials that each kind would run, without kinds that have none. One query at most."""
    if run.is_open:
        return (
            {RetryKind.RESUME.value: run.open}
            if claims.is_abandoned(run.launch) and not _refusal(run)
            else {}
        )
    if not (run.errors or run.cancelled) or _refusal(run):
        return {}
    if not run.cancelled:
        return {} if run.error else {RetryKind.RETRY.value: run.errors}
    kinds = {kind.value: Count("pk", filter=_is_retried(run, kind)) for kind in RetryKind}
    counts = Trial.objects.filter(run=run, round=0).aggregate(**kinds)
    if counts[RetryKind.RETRY] == counts[RetryKind.RESUME] and not run.errors:
        # Both are the same trials.
        del counts[RetryKind.RESUME]
    return {name: count for name, count in counts.items() if count}


def retry_trials(run: Run, kind: RetryKind, *, by: User | None, wake: bool = True) -> int:
    """Reopen a run and queue its trials; return their number. Raises `NotRetryable`.

    Wakes workers unless the caller executes the run, which then needs the labels of its target.
    """
    if not wake:
        refuse_missing_labels([run.target])
    if run.is_open:
        return _take_over(run, kind, by=by, wake=wake)
    with write_transaction():
        run = lock_closed(run)
        trials = list(trials_to_run(run, kind))
        if not trials:
            what = "errors to retry" if kind == RetryKind.RETRY else "cancelled trials to resume"
            raise NotRetryable(f"Run {run.pk} has no {what}.")
        _keep_attempts(trials)
        _requeue([trial.pk for trial in trials])
        cancelled = sum(trial.state == TrialState.CANCELLED for trial in trials)
        reopen(run)
        Run.objects.filter(pk=run.pk).update(
            open=F("open") + len(trials),
            cancelled=F("cancelled") - cancelled,
            errors=F("errors") - (len(trials) - cancelled),
            rollups_at=None,
        )
        retries = kind == RetryKind.RETRY
        audit.append_event(run.project, by, "run.retry" if retries else "run.resume", run, trials=len(trials))
        launches = Launch.objects.filter(pk=run.launch_id)
        if wake:
            claims.leave_to_workers(launches)
            wakeups.after_commit_prepare([run.pk])
        else:
            claims.hold_launches(launches)
    return len(trials)


def _take_over(run: Run, kind: RetryKind, *, by: User | None, wake: bool) -> int:
    """Go on with an open run whose process is gone; return how many trials are open. Raises `NotRetryable`."""
    launches = Launch.objects.filter(pk=run.launch_id)
    with write_transaction():
        gone = claims.abandoned_launches().filter(pk=run.launch_id)
        if kind != RetryKind.RESUME or not gone.exists():
            raise NotRetryable(_in_progress(run))
        if refusal := _refusal(run) or _why_no_trial_starts(run):
            raise NotRetryable(refusal)
        if wake:
            claims.leave_to_workers(launches)
        else:
            claims.hold_launches(launches)
        audit.append_event(run.project, by, "run.resume", run, trials=run.open)
    claims.requeue_lost()
    if wake:
        wakeups.wake_free_lanes(run.pk)
        wakeups.prepare_queued()
    return run.open


def _in_progress(run: Run) -> str:
    """Return why an open run can't run kind, and what to do."""
    launch = Launch.objects.get(pk=run.launch_id)
    if claims.is_abandoned(launch):
        return f"The process of run {run.pk} ended before the run. Resume the run (--resume), or cancel it."
    if launch.held_by not in ("", claims.own_hold()):
        holder = claims.holder_of(launch)
        return (
            f"Run {run.pk} is in progress in a command (--now, {holder}). Cancel it, or wait until it has "
            f"finished; if that command was killed, wait {settings.LEASE_SECONDS:g} s."
        )
    return f"Run {run.pk} is in progress. Cancel it, or wait until it has finished."


def _refusal(run: Run) -> str:
    """Return why a run must stay as it is; empty if it may run again."""
    if run.trigger == Trigger.CONFIRM:
        return f"Run {run.pk} confirms a regression, and its result is final. Confirm the regression again instead."
    if run.target.is_imported:
        return f"Run {run.pk} was imported, so evalhub has no target to run it on."
    if not run.target.accepted:
        return f"The target '{run.target.name}' is not accepted. An admin can accept it on the targets page."
    return ""


def _why_no_trial_starts(run: Run) -> str:
    """Return why no trial could start; empty otherwise."""
    if run.max_usd is not None and spending.is_budget_spent(run.launch_id, run.max_usd):
        return f"{spending.budget_reason(run)} Start a new run with a higher budget."
    if spent := month_spent_sentence(run.project):
        return f"{spent} An admin can raise it in the project's settings."
    reassessed = run.reassessments.filter(finished=None).values("pk")
    if Job.objects.filter(kind=Job.Kind.REASSESSMENT, subject__in=reassessed).exclude(token="").exists():
        return f"Run {run.pk} is being judged or graded again. Wait until that has finished."
    if ProviderBatch.objects.filter(run=run, state=BatchState.SUBMITTED).exists():
        return f"The batch of run {run.pk} is still being cancelled. Try again in a minute."
    return ""


def _keep_attempts(trials: Sequence[Trial]) -> None:
    """Store how these trials ended; one that never started and has no error leaves nothing to keep."""
    keys = [trial.pk for trial in trials]
    rows = TrialAttempt.objects.filter(trial__in=keys).values_list("trial").annotate(Max("number"))
    numbers: dict[int, int] = dict(rows)
    TrialAttempt.objects.bulk_create(
        [
            TrialAttempt(
                trial=trial,
                number=numbers.get(trial.pk, 0) + 1,
                started=trial.started,
                finished=trial.finished,
                **{name: getattr(trial, name) for name in _ATTEMPT},
            )
            for trial in trials
            if trial.started or trial.error
        ],
        batch_size=500,
    )
    artifacts = list(Artifact.objects.filter(trial__in=keys).exclude(name__startswith="attempt-"))
    for artifact in artifacts:
        artifact.name = f"attempt-{numbers.get(artifact.trial_id, 0) + 1}-{artifact.name}"[:_LONGEST_NAME]
    Artifact.objects.bulk_update(artifacts, ["name"], batch_size=500)


def _requeue(keys: Sequence[int]) -> None:
    """Queue these trials without their results; their judgings stay but no longer count."""
    for model in (TranscriptRecord, CommandRecord, SearchEntry, BatchAnswer):
        model.objects.filter(trial__in=keys).delete()
    ReassessedTrial.objects.filter(trial__in=keys, reassessment__adopted=None).delete()
    JudgingRecord.objects.filter(trial__in=keys).update(counts=False)
    fixed = {"run", "scenario_version", "scenario", "index", "position"}
    blank = {name: value for name, value in statements.blank(Trial).items() if name not in fixed}
    Trial.objects.filter(pk__in=keys).update(**blank)


def lock_closed(run: Run) -> Run:
    """Return a closed run that may run again, locked: of two people at once, one reopens it. Raises `NotRetryable`."""
    won = Run.objects.filter(pk=run.pk, state__in=[RunState.FINISHED, RunState.CANCELLED])
    if not won.update(cancel_requested=False):
        raise NotRetryable(_in_progress(run))
    run = Run.objects.select_related("project", "target", "launch").get(pk=run.pk)
    if refusal := _refusal(run) or _why_no_trial_starts(run):
        raise NotRetryable(refusal)
    return run


def reopen(run: Run) -> None:
    """Queue a closed run. With no result left, a changed target applies to all trials."""
    values: dict[str, Any] = {"options": run.options}
    if run.passed or run.failed:
        if not run.launch.request.get("tool_version"):
            expected = RunOptions(**{**run.options, "expected_tool": run.tool_version})
            values["options"] = {**run.options, **expected.model_dump(mode="json", include={"expected_tool"})}
    else:
        values |= {"target_version": None, "tool_version": run.launch.request.get("tool_version", "")}
        run.judge_versions.clear()
    if run.started and run.finished:
        # Durations and the time left exclude the time in which the run was closed.
        values["started"] = run.started + (timezone.now() - run.finished)
    ProviderBatch.objects.filter(run=run).delete()
    Run.objects.filter(pk=run.pk).update(
        state=RunState.QUEUED,
        outcome="",
        error="",
        warnings=[each for each in run.warnings if not each.endswith(" did not run.")],
        cancel_requested=False,
        starts=0,
        put_back=0,
        finished=None,
        **values,
    )


def extend_runs(
    runs: Sequence[Run], keys: Collection[str], trials: int, *, until_decided: bool = False, by: User | None
) -> Launch:
    """Queue trials of these scenarios in two closed runs, the compared one last, in turn.

    With `until_decided`, `trials` are the most of each scenario, added in looks. Raises `RequestError` if one of the
    runs can't run again.
    """
    base, new = runs
    first = first_size(trials) if until_decided else trials
    stop = {"first": first, "most": trials, "looks": [], "ended": False}
    with write_transaction():
        rounds: dict[int, int] = {}
        try:
            for run in sorted(runs, key=lambda run: run.pk):
                locked = lock_closed(run)
                reopen(locked)
                add_trials(locked, dict.fromkeys(keys, first))
                rounds[run.pk] = Trial.objects.filter(run=run).aggregate(last=Max("round"))["last"]
                audit.append_event(locked.project, by, "run.more", locked, trials=first * len(keys))
        except NotRetryable as error:
            raise RequestError(str(error)) from error
        claims.leave_to_workers(Launch.objects.filter(runs__in=rounds))
        wakeups.after_commit_prepare(list(rounds))
        return Launch.objects.create(
            project=new.project,
            by=by,
            trigger=Trigger.WEB,
            preset=Preset.MORE,
            about=new,
            request={"base": base.pk, "rounds": {str(pk): number for pk, number in rounds.items()}},
            stop=stop,
        )

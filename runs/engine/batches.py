"""One batch for all trials of a run: submitted once and polled until its answers arrive."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from evalhub.lib.storable_text import make_storable
from evaluators.redaction import mask_values
from runs.db.retry import retry_when_lost
from runs.db.transactions import DatabaseNow, request_job, write_transaction
from runs.engine.batch_answers import find_batching, row_of
from runs.engine.context import RunContext, load_run
from runs.engine.task import load_task
from runs.engine.workspace.workspace import placeholder_paths
from runs.errors import ProviderError
from runs.models import BatchAnswer, Job, ProviderBatch, Run, Trial
from runs.models.job import BatchState
from runs.models.trial import TrialState
from runs.targets.providers.base import BatchedAnswer, Batching, Invocation
from runs.workers import jobs
from runs.workers.claims import Claim
from runs.workers.job_runner import run_job

logger = logging.getLogger(__name__)

FIRST_LOOK_SECONDS = 2.0
LONGEST_WAIT_SECONDS = 60.0
GIVEN_UP_AFTER = timedelta(hours=26)
"""Providers promise an end within 24 hours."""

LOST = (
    "the worker that handed in the batch was lost, and whether the provider took it is not known. "
    "Look for it in the provider's own list, where it may be cancelled."
)


def submit(context: RunContext, token: str, warnings: list[str]) -> None:
    """Submit the run's batch if its target uses batching. A failure is a warning, never an error.

    A row with the preparation's token is stored first: a later preparation that finds it doesn't submit a second
    batch, because the state of the first is unknown.
    """
    if not context.target.options.provider_batching:
        return
    batching = find_batching(context.provider)
    if isinstance(batching, str):
        # Only a verbose run says so (AgentV evaluation, Fallback when provider cannot batch).
        logger.info("run %s: %s", context.run.pk, _warning(batching))
        warnings += [_warning(batching)] if context.options.verbose else []
        return
    row, new = ProviderBatch.objects.get_or_create(
        run=context.run, defaults={"state": BatchState.SUBMITTING, "token": token}
    )
    if new:
        _submit(row, batching, context)
    elif row.state == BatchState.SUBMITTING:
        _fail(row, LOST)
    row.refresh_from_db()
    if row.state == BatchState.FAILED:
        warnings.append(_warning(row.detail["reason"]))


def _warning(reason: str) -> str:
    return f"The cases are sent one by one, although `provider_batching` is set: {reason}"


def _submit(row: ProviderBatch, batching: Batching, context: RunContext) -> None:
    invocations = _invocations(context)
    if not invocations:
        _fail(row, "the cases are conversations, which take several requests.")
        return
    try:
        external_id = batching.submit_batch(invocations)
    except ProviderError as error:
        _fail(row, mask_values(str(error), context.target.secrets))
        return
    submitting = ProviderBatch.objects.filter(pk=row.pk, state=BatchState.SUBMITTING, token=row.token)
    submitted = ProviderBatch.objects.filter(pk=row.pk, external_id=external_id)

    def store() -> bool:
        with write_transaction():
            values = {"external_id": external_id, "submitted": timezone.now()}
            if not submitting.update(state=BatchState.SUBMITTED, **values):
                return False
            due = DatabaseNow() + FIRST_LOOK_SECONDS
            run = context.run
            request_job(Job.Kind.BATCH, run.pk, labels=run.target.labels, launch=run.launch, due=due)
            return True

    if not retry_when_lost(store, committed=lambda: submitted.exists() or None):
        # Another worker took over the preparation and continues without the batch.
        _cancel(batching, external_id)


def _invocations(context: RunContext) -> dict[str, Invocation]:
    """Return each trial's invocation by its key, except conversations over stubs, which have several turns."""
    rows = Trial.objects.filter(run=context.run, state=TrialState.QUEUED).order_by("position")
    invocations = {str(trial.pk): _invocation(trial, context) for trial in rows}
    return {id: invocation for id, invocation in invocations.items() if invocation.spec.stubs is None}


def _invocation(trial: Trial, context: RunContext) -> Invocation:
    claim = Claim(trial.pk, trial.run_id, "", trial.starts, trial.scenario_version_id, trial.index)
    return load_task(claim, context).invocation(placeholder_paths(settings.WORK_DIR), {})


def must_wait(run_id: int) -> bool:
    """Return whether a run's trials must wait for its batch. Asks its provider if that is due and ours to do."""
    if not _find_submitted(run_id).exists():
        return False
    for job in jobs.due_jobs().filter(kind=Job.Kind.BATCH, subject=run_id):
        run_job(job.pk, check_batch)
    return _find_submitted(run_id).exists()


def drop(run_id: int) -> None:
    """Cancel the batch of a closed run at once, for the process that ran it.

    The interrupt may have come while this process asked for the batch, and then it still has the job.
    """
    Job.objects.filter(kind=Job.Kind.BATCH, subject=run_id).update(due=0.0, token="")
    must_wait(run_id)


def check_batch(job: Job) -> bool:
    """Ask the provider about a run's batch and act on the answer; return whether it is still with the provider."""
    row = _find_submitted(job.subject).select_related("run").first()
    if row is None:
        return False
    try:
        context = retry_when_lost(lambda: load_run(row.run_id))
        batching = find_batching(context.provider)
        if isinstance(batching, str):
            _fail_running(job, row, batching)
        elif not row.run.is_open:
            _cancel(batching, row.external_id)
            retry_when_lost(lambda: _find_submitted(row.run_id).update(state=BatchState.CANCELLED))
        else:
            _follow(job, row, batching, context)
    except ProviderError as error:
        _after_failed_poll(job, row, str(error))
    return _find_submitted(row.run_id).exists()


def _follow(job: Job, row: ProviderBatch, batching: Batching, context: RunContext) -> None:
    progress = batching.poll_batch(row.external_id)
    if progress.failed:
        _fail_running(job, row, progress.failed)
    elif progress.ended:
        _take(row, batching.fetch_batch(row.external_id), context)
    else:
        _poll_later(job)


def _poll_later(job: Job) -> None:
    jobs.put_off(job, min(LONGEST_WAIT_SECONDS, FIRST_LOOK_SECONDS * 1.5 ** (job.attempts - 1)))


def _after_failed_poll(job: Job, row: ProviderBatch, sentence: str) -> None:
    """Poll later: the batch continues while its provider is unreachable. Give up after the deadline."""
    logger.warning("run %s: cannot poll its batch: %s", row.run_id, sentence)
    if timezone.now() - row.submitted > GIVEN_UP_AFTER:
        _fail_running(job, row, sentence)
    else:
        _poll_later(job)


def _take(row: ProviderBatch, answers: Mapping[str, BatchedAnswer], context: RunContext) -> None:
    """Store the answers of the run's trials in one transaction."""
    trials = Trial.objects.filter(run=row.run_id).values_list("pk", flat=True)
    ids = {str(pk): pk for pk in retry_when_lost(lambda: list(trials))}
    secrets = context.secrets(None)
    rows = [row_of(pk, answers[id], secrets) for id, pk in ids.items() if id in answers]
    missing = len(ids) - sum(1 for each in rows if each.data)
    reasons = [each.error for each in rows if each.error]

    def store() -> None:
        with write_transaction():
            if _find_submitted(row.run_id).update(state=BatchState.ENDED) != 1:
                return
            BatchAnswer.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
            if missing:
                reason = reasons[0] if reasons else "the batch had no answer for them."
                _warn(
                    row.run_id,
                    f"{missing} of {len(ids)} cases are sent one by one, not in the batch: {reason}",
                )

    retry_when_lost(store)


def _fail(row: ProviderBatch, reason: str) -> bool:
    """Mark the batch as failed; return whether this call did."""
    detail = {**row.detail, "reason": make_storable(reason)}
    open_states = [BatchState.SUBMITTING, BatchState.SUBMITTED]
    rows = ProviderBatch.objects.filter(pk=row.pk, state__in=open_states, token=row.token)
    return rows.update(state=BatchState.FAILED, detail=detail) == 1


def _fail_running(job: Job, row: ProviderBatch, reason: str) -> None:
    def fail() -> None:
        with write_transaction():
            jobs.hold_job(job)
            if _fail(row, reason):
                _warn(row.run_id, _warning(reason))

    retry_when_lost(fail)


def _warn(run_id: int, sentence: str) -> None:
    run = Run.objects.select_for_update().only("warnings").get(pk=run_id)
    run.warnings = [*run.warnings, make_storable(sentence)]
    run.save(update_fields=["warnings"])


def _cancel(batching: Batching, external_id: str) -> None:
    try:
        batching.cancel_batch(external_id)
    except ProviderError as error:
        # An abandoned batch ends within a day.
        logger.warning("batch %s cannot be cancelled: %s", external_id, error)


def _find_submitted(run_id: int) -> QuerySet[ProviderBatch]:
    """Return a run's batch while its provider has it."""
    return ProviderBatch.objects.filter(run=run_id, state=BatchState.SUBMITTED)

"""The only writer of results: one transaction a trial, fenced by its claim's token."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, F, FloatField, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from evaluators.evaluate import Evaluation
from evaluators.interaction import Interaction
from evaluators.model import Command, Json, Score, Transcript, Usage
from runs import comparing
from runs.artifacts import Kept
from runs.claims import Claim
from runs.models import Artifact, CommandRecord, JudgingRecord, Run, TranscriptRecord, Trial
from runs.models.run import RunState
from runs.models.trial import TrialState, json_of
from runs.rollups import write_rollups
from runs.writing import write_transaction

LONGEST_ANSWER = 200_000
"""Characters of an answer kept on the trial; the raw output is an artifact."""


@dataclass(frozen=True)
class TrialResult:
    """Everything that is kept of a trial that ended."""

    outcome: str
    error: str = ""
    error_kind: str = ""
    evaluation: Evaluation | None = None
    transcript: Transcript | None = None
    interaction: Interaction | None = None
    completed: bool | None = None
    timed_out: bool = False
    exit_code: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None
    usage: Usage | None = None
    answer: str = ""
    artifacts: tuple[Kept, ...] = ()
    detail: dict[str, Json] = field(default_factory=dict)
    cancelled: bool = False


def record(claim: Claim, result: TrialResult) -> bool:
    """Store a trial's result, exactly once; False when the claim was lost and the result is thrown away."""
    with write_transaction():
        if not _finish_trial(claim, result):
            return False
        if not result.cancelled:
            _store_parts(claim.trial_id, result)
        _count(claim.run_id, result)
    return True


def _finish_trial(claim: Claim, result: TrialResult) -> bool:
    evaluation = result.evaluation
    usage = result.usage
    changed = Trial.objects.filter(pk=claim.trial_id, token=claim.token, state=TrialState.RUNNING).update(
        state=TrialState.CANCELLED if result.cancelled else TrialState.FINISHED,
        outcome="" if result.cancelled else result.outcome,
        token="",
        completed=result.completed,
        timed_out=result.timed_out,
        exit_code=result.exit_code,
        composite=evaluation.composite if evaluation else None,
        seconds=result.seconds,
        cost_usd=result.cost_usd,
        tokens_in=usage.input if usage else None,
        tokens_out=usage.output if usage else None,
        tokens_estimated=bool(usage and usage.estimated),
        error=result.error,
        error_kind=result.error_kind,
        answer=result.answer[:LONGEST_ANSWER].replace("\x00", "\ufffd"),
        scores=scores_json(evaluation.scores) if evaluation else [],
        detail=result.detail,
        finished=timezone.now(),
    )
    return changed == 1


def scores_json(scores: tuple[Score, ...]) -> list[dict[str, Any]]:
    """Return scores as the trial's JSON; a judge's judging has its own table."""
    rows = []
    for score in scores:
        row = json_of(score)
        row.pop("judging", None)
        rows.append(row)
    return rows


def _store_parts(trial_id: int, result: TrialResult) -> None:
    if result.transcript is not None:
        TranscriptRecord.objects.create(
            trial_id=trial_id,
            source=result.transcript.source,
            data=TranscriptRecord.pack(result.transcript),
            events=len(result.transcript.events),
        )
    if result.interaction is not None and result.interaction.commands:
        CommandRecord.objects.bulk_create(
            [_command_row(trial_id, command) for command in result.interaction.commands], batch_size=500
        )
    judgings = [score for score in (result.evaluation.scores if result.evaluation else ()) if score.judging]
    if judgings:
        JudgingRecord.objects.bulk_create([judging_row(trial_id, score) for score in judgings])
    if result.artifacts:
        Artifact.objects.bulk_create(
            [
                Artifact(trial_id=trial_id, name=kept.name, sha256=kept.sha256, size=kept.size, media_type=kept.media_type)
                for kept in result.artifacts
            ]
        )


def _command_row(trial_id: int, command: Command) -> CommandRecord:
    return CommandRecord(
        trial_id=trial_id,
        n=command.n,
        line=command.line.replace("\x00", "\ufffd"),
        subcommand=(command.subcommand or "")[:200],
        exit_code=command.exit_code,
        failed=command.failed,
        help=command.help,
        retry_of=command.retry_of,
        event=command.event,
    )


def judging_row(trial_id: int, score: Score, *, counts: bool = True) -> JudgingRecord:
    """Return the row of a score's judging."""
    judging = score.judging
    if judging is None:
        raise ValueError(f"{score.layer}/{score.name} is not a judge's score.")
    return JudgingRecord(
        trial_id=trial_id,
        counts=counts,
        name=score.name[:120],
        score=judging.score,
        passed=judging.passed,
        model=judging.model[:200],
        content=json_of(judging),
        cost_usd=judging.cost_usd,
    )


def _count(run_id: int, result: TrialResult) -> None:
    counter = "cancelled" if result.cancelled else {"pass": "passed", "fail": "failed", "error": "errors"}[result.outcome]
    changes: dict[str, Any] = {"open": F("open") - 1, counter: F(counter) + 1}
    if result.usage:
        changes["tokens_in"] = F("tokens_in") + result.usage.input
        changes["tokens_out"] = F("tokens_out") + result.usage.output
    cost = total_cost(result)
    if cost is not None:
        changes["cost_usd"] = Coalesce(F("cost_usd"), 0.0, output_field=FloatField()) + cost
    Run.objects.filter(pk=run_id).update(**changes)


def total_cost(result: TrialResult) -> float | None:
    """Return what agent and judges cost together in dollars, None when nothing of it is known."""
    judged = [s.judging.cost_usd for s in (result.evaluation.scores if result.evaluation else ()) if s.judging]
    known = [cost for cost in (result.cost_usd, *judged) if cost is not None]
    return sum(known) if known else None


def close_if_done(run_id: int) -> bool:
    """Close a run whose last trial ended; True for the one caller that closed it."""
    with write_transaction():
        won = Run.objects.filter(pk=run_id, state=RunState.RUNNING, open=0).update(
            state=Case(When(cancel_requested=True, then=Value(RunState.CANCELLED)), default=Value(RunState.FINISHED)),
            outcome=Case(
                When(failed__gt=0, then=Value("fail")),
                When(errors__gt=0, then=Value("error")),
                When(passed__gt=0, then=Value("pass")),
                default=Value(""),
            ),
            finished=timezone.now(),
        )
        if won != 1:
            return False
        run = Run.objects.get(pk=run_id)
        write_rollups(run)
        comparing.compare_with_baseline(run)
    return True


def fail_run(run_id: int, token: str, sentence: str, warnings: list[str]) -> bool:
    """Close a run that cannot be prepared: the reason is kept and no trial is spent."""
    with write_transaction():
        won = Run.objects.filter(pk=run_id, token=token, state=RunState.PREPARING).update(
            state=RunState.FINISHED,
            outcome="error",
            error=sentence,
            warnings=warnings,
            token="",
            finished=timezone.now(),
        )
        if won == 1:
            cancel_queued(run_id)
    return won == 1


def cancel_queued(run_id: int) -> int:
    """Cancel the trials that nobody has begun; return their number. The caller holds the transaction."""
    cancelled = Trial.objects.filter(run=run_id, state=TrialState.QUEUED).update(
        state=TrialState.CANCELLED, finished=timezone.now()
    )
    Run.objects.filter(pk=run_id).update(open=F("open") - cancelled, cancelled=F("cancelled") + cancelled)
    return cancelled


def cancel_run(run_id: int) -> bool:
    """Stop a run: queued trials at once, running ones as soon as their worker hears of it. False when it is over."""
    with write_transaction():
        asked = Run.objects.filter(
            pk=run_id, state__in=[RunState.QUEUED, RunState.PREPARING, RunState.RUNNING]
        ).update(cancel_requested=True)
        if asked != 1:
            return False
        cancel_queued(run_id)
        Run.objects.filter(pk=run_id, state=RunState.QUEUED).update(state=RunState.CANCELLED, finished=timezone.now())
    close_if_done(run_id)
    return True


def record_lost(trial_id: int, sentence: str) -> bool:
    """Record a trial whose workers were lost too often as an error."""
    trial = Trial.objects.get(pk=trial_id)
    claim = Claim(trial.pk, trial.run_id, trial.token, trial.starts)
    return record(claim, TrialResult(outcome="error", error=sentence, error_kind="lost"))

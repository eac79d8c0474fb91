"""The only writer of results: one transaction a trial, fenced by its claim's token."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, F, Value, When
from django.utils import timezone

from evaluators.evaluate import Evaluation
from evaluators.interaction import Interaction
from evaluators.model import Command, Json, Score, Transcript, Usage
from runs import comparing
from runs.models import Artifact, CommandRecord, JudgingRecord, Run, TranscriptRecord, Trial
from runs.models.run import RunState
from runs.models.trial import TrialState, json_of
from runs.queue import claims, statements
from runs.queue.claims import Claim
from runs.queue.writing import write_transaction
from runs.storage.artifacts import Kept
from runs.summaries.rollups import write_rollups

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
    """Store a trial's result, exactly once; False when the claim was lost and the result is thrown away.

    Closes the run when this was its last open trial.
    """
    with write_transaction():
        left = _store(claim, result)
    return _is_recorded(claim, left)


def record_and_claim(claim: Claim, result: TrialResult) -> tuple[bool, Claim | None]:
    """Store a trial's result as `record` does, and claim the run's next trial in the same transaction.

    The claim is None where the statement finds nothing queued, or others hold what is.
    """
    with write_transaction():
        left = _store(claim, result)
        following = claims.claim_next(claim.run_id) if left else None
    return _is_recorded(claim, left), following


def _store(claim: Claim, result: TrialResult) -> int | None:
    """Store a result; return how many trials of the run are open now, None when the claim was lost."""
    if not statements.write_trial(claim.trial_id, claim.token, columns(result)):
        return None
    if not result.cancelled:
        _store_parts(claim.trial_id, result)
    return _count(claim.run_id, result)


def _is_recorded(claim: Claim, left: int | None) -> bool:
    if left == 0:
        close_if_done(claim.run_id)
    return left is not None


def columns(result: TrialResult) -> dict[str, Any]:
    """Return a result as the trial's columns."""
    evaluation, usage = result.evaluation, result.usage
    return {
        "state": (TrialState.CANCELLED if result.cancelled else TrialState.FINISHED).value,
        "outcome": "" if result.cancelled else result.outcome,
        "token": "",
        "doing": "",
        "calls_so_far": None,
        "completed": result.completed,
        "timed_out": result.timed_out,
        "exit_code": result.exit_code,
        "composite": evaluation.composite if evaluation else None,
        "seconds": result.seconds,
        "cost_usd": result.cost_usd,
        "tokens_in": usage.input if usage else None,
        "tokens_out": usage.output if usage else None,
        "tokens_estimated": bool(usage and usage.estimated),
        "error": result.error,
        "error_kind": result.error_kind,
        "answer": result.answer[:LONGEST_ANSWER],
        "scores": scores_json(evaluation.scores) if evaluation else [],
        "detail": result.detail,
        "finished": timezone.now(),
    }


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
        row = {
            "trial": trial_id,
            "source": result.transcript.source,
            "data": TranscriptRecord.pack(result.transcript),
            "events": len(result.transcript.events),
        }
        statements.insert(TranscriptRecord, [row])
    commands = result.interaction.commands if result.interaction else ()
    statements.insert(CommandRecord, [command_row(trial_id, command) for command in commands])
    judgings = [score for score in (result.evaluation.scores if result.evaluation else ()) if score.judging]
    statements.insert(JudgingRecord, [judging_row(trial_id, score) for score in judgings])
    statements.insert(Artifact, [{"trial": trial_id, **vars(kept)} for kept in result.artifacts])


def command_row(trial_id: int, command: Command) -> dict[str, Any]:
    """Return the row of one command of the tool."""
    return {
        "trial": trial_id,
        "n": command.n,
        "line": command.line,
        "subcommand": (command.subcommand or "")[:200],
        "exit_code": command.exit_code,
        "failed": command.failed,
        "help": command.help,
        "retry_of": command.retry_of,
        "event": command.event,
    }


def judging_row(trial_id: int, score: Score, *, counts: bool = True) -> dict[str, Any]:
    """Return the row of a score's judging."""
    judging = score.judging
    if judging is None:
        raise ValueError(f"{score.layer}/{score.name} is not a judge's score.")
    return {
        "trial": trial_id,
        "counts": counts,
        "name": score.name[:120],
        "score": judging.score,
        "passed": judging.passed,
        "model": judging.model[:200],
        "content": json_of(judging),
        "cost_usd": judging.cost_usd,
        "created": timezone.now(),
    }


def _count(run_id: int, result: TrialResult) -> int:
    """Count the result on the run; return the number of its open trials."""
    outcomes = {"pass": "passed", "fail": "failed", "error": "errors"}
    usage = result.usage
    return statements.count_result(
        run_id,
        "cancelled" if result.cancelled else outcomes[result.outcome],
        tokens_in=usage.input if usage else 0,
        tokens_out=usage.output if usage else 0,
        cost_usd=total_cost(result),
    )


def total_cost(result: TrialResult) -> float | None:
    """Return what agent and judges cost together in dollars, None when nothing of it is known."""
    judged = [
        s.judging.cost_usd for s in (result.evaluation.scores if result.evaluation else ()) if s.judging
    ]
    known = [cost for cost in (result.cost_usd, *judged) if cost is not None]
    return sum(known) if known else None


def close_if_done(run_id: int) -> bool:
    """Close a run whose last trial ended; True for the one caller that closed it."""
    with write_transaction():
        won = Run.objects.filter(pk=run_id, state=RunState.RUNNING, open=0).update(
            state=Case(
                When(cancel_requested=True, then=Value(RunState.CANCELLED)), default=Value(RunState.FINISHED)
            ),
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
            error=statements.storable(sentence),
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
        Run.objects.filter(pk=run_id, state=RunState.QUEUED).update(
            state=RunState.CANCELLED, finished=timezone.now()
        )
    close_if_done(run_id)
    return True


def record_lost(trial_id: int, sentence: str) -> bool:
    """Record a trial whose workers were lost too often as an error."""
    trial = Trial.objects.get(pk=trial_id)
    claim = Claim(trial.pk, trial.run_id, trial.token, trial.starts)
    return record(claim, TrialResult(outcome="error", error=sentence, error_kind="lost"))

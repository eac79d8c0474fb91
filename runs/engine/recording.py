"""Record the results that workers report: one transaction a trial, fenced by its claim's token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Case, Exists, F, OuterRef, QuerySet, Value, When
from django.utils import timezone
from msgspec.structs import replace

from evalhub.lib.limits import LONGEST_TEXT
from evalhub.lib.numbers import format_count
from evalhub.lib.storable_text import make_storable
from evalhub.teams.models import Project
from evaluators.grading.evaluate import Evaluation
from evaluators.model import AgentResult, Json, Score, Transcript, plausible_cost
from evaluators.tool_use.interaction import Interaction
from runs.compare import comparison
from runs.compare.raised_alerts import conclude
from runs.db import outbox, statements
from runs.db.retry import retry_when_lost
from runs.db.transactions import new_token, write_transaction
from runs.engine import looking
from runs.errors import NotWritable
from runs.exchange.exports.files import write_suite_result
from runs.exchange.exports.result_formats import suite_run
from runs.models import (
    Launch,
    Run,
    Trial,
)
from runs.models.run import RunState, Trigger
from runs.models.trial import TrialState, command_row, json_of, scores_json
from runs.results import spending
from runs.results.files.artifacts import StoredFile
from runs.results.rollups import describe_if_never_started, write_later_measures, write_rollups
from runs.results.search.trial_search import facets_of
from runs.results.spending import month_spent_sentence
from runs.results.trial_rows import NewRows, TrialParts, insert_parts, rows_of_parts
from runs.workers import claims, wakeups
from runs.workers.claims import Claim


@dataclass(frozen=True)
class TrialResult:
    """Everything stored of a finished trial."""

    outcome: str
    error: str = ""
    error_kind: str = ""
    evaluation: Evaluation | None = None
    execution: AgentResult = field(default_factory=AgentResult)
    transcript: Transcript | None = None
    interaction: Interaction | None = None
    artifacts: tuple[StoredFile, ...] = ()
    detail: dict[str, Json] = field(default_factory=dict)
    cancelled: bool = False


def columns_of_result(result: TrialResult) -> dict[str, Any]:
    """Return a result as the trial's columns."""
    evaluation, execution = result.evaluation, result.execution
    usage = execution.usage
    return {
        "state": (TrialState.CANCELLED if result.cancelled else TrialState.FINISHED).value,
        "outcome": "" if result.cancelled else result.outcome,
        "token": "",
        "activity": "",
        "calls_so_far": None,
        "activity_exit_code": None,
        "completed": execution.exit_code == 0 and not execution.timed_out if evaluation else None,
        "timed_out": execution.timed_out,
        "exit_code": execution.exit_code,
        "composite": evaluation.composite if evaluation else None,
        "seconds": execution.seconds,
        "cost_usd": plausible_cost(execution.cost_usd),
        "tokens_in": usage.input if usage else None,
        "tokens_out": usage.known_output if usage else None,
        "tokens_estimated": bool(usage and usage.estimated),
        "error": result.error,
        "error_kind": result.error_kind,
        "answer": _cut(execution.answer or ""),
        "scores": scores_json(evaluation.scores) if evaluation else [],
        "detail": result.detail,
        "finished": timezone.now(),
    }


def _cut(answer: str) -> str:
    """Return an answer as it is stored: its beginning, and how much was left out."""
    left_out = len(answer) - LONGEST_TEXT
    return answer if left_out <= 0 else f"{answer[:LONGEST_TEXT]}\n[... {left_out:,} characters left out ...]"


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
        "rubric": judging.rubric,
        "content": json_of(replace(judging, rubric="")),
        "cost_usd": plausible_cost(judging.cost_usd),
        "created": timezone.now(),
    }


def total_cost(result: TrialResult) -> float | None:
    """Return the cost of agent and judges in dollars; None if unknown."""
    judged = [
        s.judging.cost_usd for s in (result.evaluation.scores if result.evaluation else ()) if s.judging
    ]
    known = [cost for cost in map(plausible_cost, (result.execution.cost_usd, *judged)) if cost is not None]
    return sum(known) if known else None


START_KINDS = frozenset({"start", "configuration"})
START_ERRORS = 3
"""Equal errors before any other result after which a run's remaining trials are cancelled."""
NOT_STARTED = f"The first {START_ERRORS} trials could not start:"
RETRY_FAILED = "The retry could not start:"
"""How the reasons of trials begin that were cancelled because of errors."""


def record_result(claim: Claim, result: TrialResult, *, may_wait: Callable[[], bool] | None = None) -> bool:
    """Store a trial's result, exactly once; return False if the claim was lost and the result is discarded.

    Closes the run after its last trial. Retries while the database is away, for the length of a lease or as long as
    `may_wait` returns True.
    """
    recorded, _ = _record(claim, result, following="", may_wait=may_wait)
    return recorded


def record_and_claim(
    claim: Claim, result: TrialResult, *, may_wait: Callable[[], bool] | None = None
) -> tuple[bool, Claim | None]:
    """Store a trial's result as `record` does, and claim the run's next trial in the same transaction.

    The claim is None if no trial could be claimed.
    """
    return _record(claim, result, following=new_token(), may_wait=may_wait)


def _record(
    claim: Claim, result: TrialResult, *, following: str, may_wait: Callable[[], bool] | None
) -> tuple[bool, Claim | None]:
    """Store a result and claim the next trial under the token `following`; an empty one claims nothing."""
    values = columns_of_result(result)

    def store() -> tuple[bool, bool, Claim | None]:
        # Compressing transcripts inside the transaction would hold up SQLite's other writers.
        parts = _parts(claim, result)
        with write_transaction():
            after = _store(claim, result, values, parts)
            claimed = (
                claims.claim_next(claim.run_id, following) if following and after and after.open else None
            )
        return after is not None, after is not None and (after.open == 0 or after.is_spent), claimed

    def stored() -> tuple[bool, bool, Claim | None] | None:
        # The timestamp is unique to this attempt: the row shows whether it was committed.
        ours = Trial.objects.filter(pk=claim.trial_id, state=values["state"], finished=values["finished"])
        if not ours.exists():
            return None
        return True, True, claims.held_claim(claim.run_id, following) if following else None

    recorded, may_close, claimed = retry_when_lost(store, committed=stored, may_wait=may_wait)
    if may_close:
        retry_when_lost(lambda: _close_or_stop(claim.run_id))
    return recorded, claimed


def _close_or_stop(run_id: int) -> None:
    """Close a run whose trials have ended, after stopping the other runs of a launch that spent its budget."""
    for sibling in spending.siblings_to_stop(run_id):
        with write_transaction():
            _stop_at_budget(sibling)
        close_if_done(sibling)
    close_if_done(run_id)


class _After(NamedTuple):
    """A run after a result was stored."""

    open: int
    """Trials that have not ended."""
    is_spent: bool
    """Whether the budget of its launch is spent."""


def _store(
    claim: Claim, result: TrialResult, values: Mapping[str, Any], parts: Iterable[NewRows]
) -> _After | None:
    """Store a result; return what is left of its run, None if the claim was lost."""
    if not statements.write_trial(claim.trial_id, claim.token, values):
        return None
    insert_parts(parts)
    return _count(claim, result)


def _parts(claim: Claim, result: TrialResult) -> list[NewRows]:
    """Return the rows to store beside the trial's own, by model; none for a cancelled trial. One query."""
    if result.cancelled:
        return []
    trial = claim.trial_id
    commands = result.interaction.commands if result.interaction else ()
    judged = [score for score in (result.evaluation.scores if result.evaluation else ()) if score.judging]
    parts = TrialParts(
        transcript=result.transcript,
        answer=result.execution.answer or "",
        error=result.error,
        commands=[command_row(trial, command) for command in commands],
        judgings=[judging_row(trial, score) for score in judged],
        judged=[score.judging for score in judged if score.judging],
        artifacts=[vars(kept) for kept in result.artifacts],
    )
    return rows_of_parts([(trial, facets_of(claim.run_id, result.outcome), parts)])


def _count(claim: Claim, result: TrialResult) -> _After:
    """Count the result on the run, and cancel its queued trials if the budget is spent."""
    run_id = claim.run_id
    outcomes = {"pass": "passed", "fail": "failed", "error": "errors"}
    usage = result.execution.usage
    after = statements.count_result(
        run_id,
        claim.trial_id,
        "cancelled" if result.cancelled else outcomes[result.outcome],
        tokens_in=usage.input if usage else 0,
        tokens_out=usage.output if usage else 0,
        cost_usd=total_cost(result),
    )
    if after.open and _cannot_start(run_id, result):
        sentence = f"{NOT_STARTED} {result.error}"
        return _After(after.open - _stop(Run.objects.get(pk=run_id), sentence), is_spent=False)
    if after.open and result.detail.get("not_started") and (sentence := describe_if_never_started(run_id)):
        return _After(after.open - _stop(Run.objects.get(pk=run_id), sentence), is_spent=False)
    if after.open and total_cost(result) and (sentence := _month_spent(run_id)):
        return _After(after.open - _stop(Run.objects.get(pk=run_id), sentence), is_spent=False)
    if after.max_usd is None:
        return _After(after.open, is_spent=False)
    # Lanes that store at the same time must see each other's costs.
    Launch.objects.select_for_update(no_key=True).only("pk").get(pk=after.launch)
    if not spending.is_budget_spent(after.launch, after.max_usd):
        return _After(after.open, is_spent=False)
    return _After(after.open - _stop_at_budget(run_id), is_spent=True)


def _cannot_start(run_id: int, result: TrialResult) -> bool:
    """Return whether all trials so far ended with the same error before their agent started."""
    if result.outcome != "error" or result.error_kind not in START_KINDS:
        return False
    finished = Trial.objects.filter(run=run_id, state=TrialState.FINISHED)
    errors = list(finished.values_list("error", flat=True)[: START_ERRORS + 1])
    return len(errors) == START_ERRORS and len({*errors}) == 1


def _month_spent(run_id: int) -> str:
    project = Project.objects.filter(runs=run_id).only("month_usd").first()
    return month_spent_sentence(project) if project else ""


def _stop_at_budget(run_id: int) -> int:
    """Cancel a run's queued trials because its launch's budget is spent; return their number."""
    run = Run.objects.get(pk=run_id)
    return _stop(run, spending.budget_reason(run))


def _stop(run: Run, sentence: str) -> int:
    """Cancel a run's queued trials and warn of it; return their number."""
    run_id, sentence = run.pk, make_storable(sentence)
    cancelled = cancel_queued(run_id, sentence)
    if cancelled:
        Run.objects.filter(pk=run_id).update(
            warnings=[*run.warnings, f"{sentence} {format_count(cancelled, 'trial')} did not run."]
        )
    return cancelled


def close_if_done(run_id: int) -> bool:
    """Close a run after its last trial; return True only for the call that closed it.

    A run until a verdict gets the next look's trials instead while it is undecided.
    """
    with write_transaction():
        ended = looking.look_at_run(run_id)
    # The reference of two runs that are looked at together closes first.
    closed = [each for each in ended if _close(each)]
    return run_id in closed


def _close(run_id: int) -> bool:
    """Close a run whose trials have all ended; return True only for the call that closed it."""
    fresh = Trial.objects.filter(run=OuterRef("pk"), round__gt=0)
    with write_transaction():
        won = Run.objects.filter(pk=run_id, state=RunState.RUNNING, open=0).update(
            state=Case(
                # Who cancels a later round stops its trials alone: the run's own have ended.
                When(Exists(fresh), cancelled=0, then=Value(RunState.FINISHED)),
                When(cancel_requested=True, then=Value(RunState.CANCELLED)),
                default=Value(RunState.FINISHED),
            ),
            outcome=Case(
                When(failed__gt=0, then=Value("fail")),
                When(errors__gt=0, then=Value("error")),
                # Trials that passed say nothing of those that were cancelled.
                When(cancel_requested=True, cancelled__gt=0, then=Value("")),
                When(passed__gt=0, then=Value("pass")),
                default=Value(""),
            ),
            finished=timezone.now(),
            followed_up=Case(When(rollups_at=None, then=Value(False)), default=Value(True)),
        )
        if won != 1:
            return False
        claims.remove_slots(run_id)
        run = Run.objects.get(pk=run_id)
        if run.rollups_at is not None:
            # It closed before, and got further trials that only a comparison counts.
            write_later_measures(run)
            return True
        write_rollups(run)
        comparison.compare_with_baseline(run)
        outbox.record_failure(run)
    # A caller that retries finds the run closed, and would leave out what follows.
    retry_when_lost(lambda: follow_close(run))
    return True


def follow_close(run: Run) -> None:
    """Do what follows the closing of a run; safe to repeat."""
    # Not in the same transaction: two runs that close at once would not see each other.
    with write_transaction():
        comparison.compare_named(run)
    _confirm(run)
    _write_result(run.pk)
    Run.objects.filter(pk=run.pk).update(followed_up=True)
    if not run.launch.held_by:
        # The tick would send its messages some seconds later.
        wakeups.wake_for_messages()


def _write_result(run_id: int) -> None:
    """Write a closed run's EvalSuiteResult where an output folder is configured (tool-forge eval runner, outputDir)."""
    if not settings.OUTPUT_DIR:
        return
    run = Run.objects.select_related("suite", "suite_version", "target", "baseline").get(pk=run_id)
    try:
        write_suite_result(settings.OUTPUT_DIR, suite_run(run))
    except NotWritable as error:
        sentence = f"EVALHUB_OUTPUT_DIR: {error}"
        if sentence not in run.warnings:
            Run.objects.filter(pk=run_id).update(warnings=[*run.warnings, sentence])


def _confirm(run: Run) -> None:
    """Conclude the confirmation that a closed run belongs to."""
    if run.trigger == Trigger.CONFIRM:
        with write_transaction():
            conclude(run.launch_id)


def fail_run(run_id: int, token: str, sentence: str, warnings: list[str]) -> bool:
    """Close a run that cannot be prepared, with the reason and without running trials.

    A retried run keeps its results, and the reason is a warning.
    """
    with write_transaction():
        retried = Run.objects.filter(pk=run_id, token=token, state=RunState.PREPARING, started__isnull=False)
        reopened = retried.update(state=RunState.RUNNING, token="")
        if reopened:
            _stop(Run.objects.get(pk=run_id), f"{RETRY_FAILED} {sentence}")
    if reopened:
        return close_if_done(run_id)
    with write_transaction():
        won = Run.objects.filter(pk=run_id, token=token, state=RunState.PREPARING).update(
            state=RunState.FINISHED,
            outcome="error",
            error=make_storable(sentence),
            warnings=warnings,
            token="",
            finished=timezone.now(),
        )
        if won == 1:
            cancel_queued(run_id)
            claims.remove_slots(run_id)
            run = Run.objects.get(pk=run_id)
            outbox.record_failure(run)
    if won == 1:
        _confirm(run)
    return won == 1


def cancel_queued(run_id: int, reason: str = "") -> int:
    """Cancel queued trials, with the reason as their error; return their number. Call it in a transaction."""
    queued = Trial.objects.filter(run=run_id, state=TrialState.QUEUED)
    return _cancel_trials(run_id, queued, state=TrialState.CANCELLED, finished=timezone.now(), error=reason)


def _cancel_trials(run_id: int, trials: QuerySet[Trial], **values: Any) -> int:
    """Cancel trials of a run, with these values; return their number. Those of later rounds aren't counted on the run."""
    cancelled = trials.filter(round=0).update(**values)
    both = cancelled + trials.update(**values)
    Run.objects.filter(pk=run_id).update(open=F("open") - both, cancelled=F("cancelled") + cancelled)
    return both


def cancel_run(run_id: int) -> bool:
    """Cancel a run: queued trials at once, running ones when their worker notices. Return False if it is closed."""
    with write_transaction():
        updated = Run.objects.filter(
            pk=run_id, state__in=[RunState.QUEUED, RunState.PREPARING, RunState.RUNNING]
        ).update(cancel_requested=True)
        if updated != 1:
            return False
        # Without a worker, nobody else requeues what a killed process left.
        claims.requeue_lost_of(run_id)
        cancel_queued(run_id)
        queued = Run.objects.filter(pk=run_id, state=RunState.QUEUED)
        at_once = queued.filter(started=None).update(state=RunState.CANCELLED, finished=timezone.now())
        # A retried run has results to close with.
        queued.update(state=RunState.RUNNING)
    if at_once:
        _confirm(Run.objects.get(pk=run_id))
    close_if_done(run_id)
    return True


def cancel_rest(run_id: int) -> None:
    """Close a cancelled run whose trials or preparation still go on in this process; their results are discarded."""
    with write_transaction():
        # Without their token, `record` finds that the claim is lost.
        running = Trial.objects.filter(run=run_id, state=TrialState.RUNNING)
        left = {"token": "", "finished": timezone.now(), "activity": "", "calls_so_far": None}
        _cancel_trials(run_id, running, state=TrialState.CANCELLED, **left)
        Run.objects.filter(pk=run_id, state=RunState.PREPARING, cancel_requested=True).update(
            state=RunState.RUNNING, token=""
        )
    close_if_done(run_id)


def record_lost(trial_id: int, sentence: str) -> bool:
    """Record a trial that lost too many workers as an error."""
    trial = Trial.objects.get(pk=trial_id)
    claim = Claim(trial.pk, trial.run_id, trial.token, trial.starts)
    return record_result(claim, TrialResult(outcome="error", error=sentence, error_kind="lost"))

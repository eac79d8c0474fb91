"""What a run's badge says: one answer, the first that is true."""

from __future__ import annotations

from enum import StrEnum

from evaluators.statistics.measure_change import AS_BEFORE, UNDECIDED, ChangeVerdict
from runs.models import Run
from runs.models.run import OPEN, RunState, has_too_many_errors
from runs.results.release_rule import MISSED
from runs.results.run_rows import TOOL_FORGE


class RunAnswer(StrEnum):
    """An answer, the one that comes first of several last."""

    RUNNING = "running"
    CANCELLED = "cancelled"
    ERROR = "error"
    """It could not run."""
    ERRORS = "errors"
    """A third of its trials or more hit errors."""
    REGRESSED = "regressed"
    FAILED = "failed"
    """It missed a rule that every trial passes."""
    BELOW_ITS_BAR = "below_its_bar"
    """It missed its suite's release rule."""
    IMPROVED = "improved"
    SMALL_CHANGE = "small_change"
    AS_BEFORE = "as_before"
    """A change of the smallest effect would have been found."""
    UNDECIDED = "undecided"
    NOT_COMPARABLE = "not_comparable"
    NEW_LINE = "new_line"
    """Nothing comparable came before."""


LOOKS = {
    RunAnswer.REGRESSED: "is-regressed",
    RunAnswer.FAILED: "is-regressed",
    RunAnswer.BELOW_ITS_BAR: "is-regressed",
    RunAnswer.IMPROVED: "is-improved",
    RunAnswer.AS_BEFORE: "is-same",
    RunAnswer.SMALL_CHANGE: "is-same",
}
"""Classes of a line by its newest run's answer; others are undecided."""
BY_VERDICT = {
    ChangeVerdict.REGRESSED: RunAnswer.REGRESSED,
    ChangeVerdict.IMPROVED: RunAnswer.IMPROVED,
    ChangeVerdict.SMALL: RunAnswer.SMALL_CHANGE,
    ChangeVerdict.NOT_COMPARABLE: RunAnswer.NOT_COMPARABLE,
    **dict.fromkeys(AS_BEFORE, RunAnswer.AS_BEFORE),
    **dict.fromkeys(UNDECIDED, RunAnswer.UNDECIDED),
}


def answer_of(
    *,
    state: str,
    error: str,
    passed: int,
    failed: int,
    errors: int,
    verdict: str,
    rule: str = "",
    needs_all: bool = False,
) -> RunAnswer:
    """Return a run's answer.

    `rule` is the state of its suite's release rule, empty without one; `needs_all` is whether every trial has to pass,
    as in tool-forge's suites and with a release rule of 100 %.
    """
    if state in OPEN:
        return RunAnswer.RUNNING
    if state == RunState.CANCELLED:
        return RunAnswer.CANCELLED
    if error:
        return RunAnswer.ERROR
    if has_too_many_errors(passed, failed, errors):
        return RunAnswer.ERRORS
    by_verdict = BY_VERDICT.get(ChangeVerdict(verdict)) if verdict else None
    if by_verdict is RunAnswer.REGRESSED:
        return by_verdict
    if needs_all and failed:
        return RunAnswer.FAILED
    if rule == MISSED:
        return RunAnswer.BELOW_ITS_BAR
    return by_verdict or RunAnswer.NEW_LINE


def answer_of_run(run: Run, *, rule: str = "") -> RunAnswer:
    """Return a run's answer; `rule` is the state of its suite's release rule. No query if its suite is loaded."""
    suite = run.suite
    return answer_of(
        state=run.state,
        error=run.error,
        passed=run.passed,
        failed=run.failed,
        errors=run.errors,
        verdict=run.verdict,
        rule=rule,
        needs_all=suite.format == TOOL_FORGE or (suite.release_threshold or 0.0) >= 1.0,
    )

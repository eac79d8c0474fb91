"""What a run's badge says: one answer, the first that is true."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from evaluators.statistics.measure_change import AS_BEFORE, UNDECIDED, ChangeVerdict
from runs.models import Run
from runs.models.run import OPEN, Outcomes, RunState, has_too_many_errors
from runs.results.release_rule import MISSED, ReleaseResult, release_result
from runs.results.run_rows import TOOL_FORGE
from scenarios.models import SESSIONS


class RunAnswer(StrEnum):
    """An answer, the one that comes first of several last."""

    RUNNING = "running"
    CANCELLED = "cancelled"
    ERROR = "error"
    """None of its trials could run."""
    TOOL_NOT_STARTED = "tool_not_started"
    """Its agents called the tool, which never started."""
    ERRORS = "errors"
    """A third of its trials or more hit errors."""
    UNCHECKED = "unchecked"
    """Nothing checked its trials."""
    REGRESSED = "regressed"
    FAILED = "failed"
    """It missed a rule that every trial passes."""
    BELOW_RELEASE_RULE = "below_release_rule"
    """It missed its suite's release rule."""
    IMPROVED = "improved"
    SMALL_CHANGE = "small_change"
    AS_EXPECTED = "as_expected"
    """Its pass rate is in the expected range of its line."""
    AS_BEFORE = "as_before"
    """A change of the smallest effect would have been found."""
    UNDECIDED = "undecided"
    NOT_COMPARABLE = "not_comparable"
    NEW_LINE = "new_line"
    """Nothing comparable came before."""
    EXPERIMENT = "experiment"
    """It joins no line, and is compared with nothing: the first arm of a comparison, such as a lift's without the skill."""


BY_VERDICT = {
    ChangeVerdict.REGRESSED: RunAnswer.REGRESSED,
    ChangeVerdict.IMPROVED: RunAnswer.IMPROVED,
    ChangeVerdict.SMALL: RunAnswer.SMALL_CHANGE,
    ChangeVerdict.NOT_COMPARABLE: RunAnswer.NOT_COMPARABLE,
    **dict.fromkeys(AS_BEFORE, RunAnswer.AS_BEFORE),
    ChangeVerdict.AS_EXPECTED: RunAnswer.AS_EXPECTED,
    **dict.fromkeys(UNDECIDED, RunAnswer.UNDECIDED),
}


class EndedRun(Outcomes, Protocol):
    """The fields of a run that its answer depends on, of a model or a row."""

    @property
    def state(self) -> str: ...
    @property
    def error(self) -> str: ...
    @property
    def verdict(self) -> str | None: ...
    @property
    def is_experiment(self) -> bool: ...


def answer_of(run: EndedRun, *, rule: str = "", needs_all: bool = False) -> RunAnswer:
    """Return a run's answer.

    `rule` is the state of its suite's release rule, empty without one; `needs_all` is whether every trial has to pass,
    as in tool-forge's suites and with a release rule of 100 %.
    """
    if run.state in OPEN:
        return RunAnswer.RUNNING
    if run.state == RunState.CANCELLED:
        return RunAnswer.CANCELLED
    if run.error:
        return RunAnswer.ERROR
    if run.not_started:
        return RunAnswer.TOOL_NOT_STARTED
    if has_too_many_errors(run.passed, run.failed, run.errors):
        return RunAnswer.ERRORS
    if run.is_unchecked:
        return RunAnswer.UNCHECKED
    by_verdict = BY_VERDICT.get(ChangeVerdict(run.verdict)) if run.verdict else None
    if by_verdict is RunAnswer.REGRESSED:
        return by_verdict
    if needs_all and run.failed:
        return RunAnswer.FAILED
    if rule == MISSED:
        return RunAnswer.BELOW_RELEASE_RULE
    return by_verdict or (RunAnswer.EXPERIMENT if run.is_experiment else RunAnswer.NEW_LINE)


def answer_of_run(run: Run, release: ReleaseResult | None = None) -> RunAnswer:
    """Return a run's answer. No query if its suite is loaded and has no release rule, or if its result is given."""
    suite = run.suite
    result = release or release_result(run)
    needs_all = suite.format == TOOL_FORGE or (suite.release_threshold or 0.0) >= 1.0
    return answer_of(run, rule=result.state if result else "", needs_all=needs_all)


def badge_of(run: Run) -> str:
    """Return a run's badge: its state while open, else its answer; none for people's sessions."""
    if run.suite.has_sessions:
        return SESSIONS
    return run.state if run.is_open else answer_of_run(run).value

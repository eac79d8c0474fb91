"""The contract's verdict on a case: the first failed assertion decides."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from evaluators.grading.assertions.trial_facts import ValueResult


class AssertionResult(Struct, frozen=True):
    """The results of one key of `expect`, value by value."""

    key: str
    values: tuple[ValueResult, ...] = ()

    @property
    def passed(self) -> bool | None:
        """Whether it passed; None if every value was skipped or there was none."""
        states = {value.state for value in self.values}
        return False if "failed" in states else ("passed" in states or None)

    @property
    def failures(self) -> tuple[str, ...]:
        """Every failure, as written in `error`."""
        return tuple(f"{self.key}: {value.sentence}" for value in self.values if value.state == "failed")


class CaseVerdict(Struct, frozen=True):
    """The verdict on a case in an EvalSuiteResult."""

    passed: bool
    error: str = ""
    failed_assertion: str = ""
    assertions_run: int = 0
    """Keys with a checked value, up to and including the failed one."""
    assertions_skipped: int = 0
    """Values skipped before the first failure."""
    skipped_tokens: tuple[str, ...] = ()
    all_failures: tuple[str, ...] = ()
    """Includes failures after the first; for pages, not for the verdict."""
    warnings: tuple[str, ...] = ()
    vacuous: bool = False
    """It passed because nothing was checked."""


TIMED_OUT = CaseVerdict(passed=False, error="timeout", failed_assertion="timeout", all_failures=("timeout",))


def case_verdict(results: Sequence[AssertionResult]) -> CaseVerdict:
    """Return the verdict on a case from the results of its keys, in the contract's order."""
    run = 0
    skipped: list[tuple[str, ValueResult]] = []
    error = failed = ""
    for result in results:
        run += result.passed is not None
        for value in result.values:
            if value.state == "failed":
                error, failed = f"{result.key}: {value.sentence}", result.key
                break
            if value.state == "skipped":
                skipped.append((result.key, value))
        if error:
            break
    return CaseVerdict(
        passed=not error,
        error=error,
        failed_assertion=failed,
        assertions_run=run,
        assertions_skipped=len(skipped),
        skipped_tokens=tuple(token for _, value in skipped for token in value.tokens),
        all_failures=tuple(failure for result in results for failure in result.failures),
        warnings=tuple(f"{key}: {value.sentence}." for key, value in skipped),
        vacuous=not error and run == 0,
    )

"""The contract's verdict on a case: the first failing assertion decides and is the error."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from evaluators.assertions.trial_facts import ValueResult


class AssertionResult(Struct, frozen=True):
    """What came of one key of `expect`, value by value."""

    key: str
    atoms: tuple[ValueResult, ...] = ()

    @property
    def passed(self) -> bool | None:
        """None where no value was looked at: all were skipped, or there was none."""
        states = {atom.state for atom in self.atoms}
        return False if "failed" in states else ("held" in states or None)

    @property
    def failures(self) -> tuple[str, ...]:
        """Every failure, as it would stand in `error`."""
        return tuple(f"{self.key}: {atom.sentence}" for atom in self.atoms if atom.state == "failed")


class CaseVerdict(Struct, frozen=True):
    """What an EvalSuiteResult says of a case."""

    passed: bool
    error: str = ""
    failed_assertion: str = ""
    assertions_run: int = 0
    """Keys of which a value was looked at, up to the failing one, which counts."""
    assertions_skipped: int = 0
    """Single values that were skipped before the first failure."""
    skipped_tokens: tuple[str, ...] = ()
    all_failures: tuple[str, ...] = ()
    """Also what failed after the first failure; for the page, never for the verdict."""
    warnings: tuple[str, ...] = ()
    vacuous: bool = False
    """It passed because nothing was looked at."""


TIMED_OUT = CaseVerdict(passed=False, error="timeout", failed_assertion="timeout", all_failures=("timeout",))


def verdict(findings: Sequence[AssertionResult]) -> CaseVerdict:
    """Return the verdict on a case from the findings of its keys, in the contract's order."""
    run = 0
    skipped: list[tuple[str, ValueResult]] = []
    error = failed = ""
    for finding in findings:
        run += finding.passed is not None
        for atom in finding.atoms:
            if atom.state == "failed":
                error, failed = f"{finding.key}: {atom.sentence}", finding.key
                break
            if atom.state == "skipped":
                skipped.append((finding.key, atom))
        if error:
            break
    return CaseVerdict(
        passed=not error,
        error=error,
        failed_assertion=failed,
        assertions_run=run,
        assertions_skipped=len(skipped),
        skipped_tokens=tuple(token for _, atom in skipped for token in atom.tokens),
        all_failures=tuple(failure for finding in findings for failure in finding.failures),
        warnings=tuple(f"{key}: {atom.sentence}." for key, atom in skipped),
        vacuous=not error and run == 0,
    )

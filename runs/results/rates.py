"""Compute a share of trials, or a run's pass rate, with its confidence interval; compare a scenario's on two sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from evaluators.statistics.comparability import Reasons
from evaluators.statistics.descriptive import pass_at_k, pass_hat_k, wilson_interval
from runs.models import Run


@dataclass(frozen=True)
class Rate:
    """Passed trials out of n, without errors."""

    passed: int
    n: int
    mean: float | None = None
    """Of several scenarios: the mean of their rates, which is their rate; None for the share of all trials."""

    @classmethod
    def of(cls, outcomes: Sequence[str]) -> Rate:
        """Return the passes of trials, by their outcomes."""
        passed = outcomes.count("pass")
        return cls(passed, passed + outcomes.count("fail"))

    @property
    def share(self) -> float:
        """Return the rate, 0 if n is 0 (check `n` first)."""
        if self.mean is not None:
            return self.mean
        return self.passed / self.n if self.n else 0.0

    @property
    def low(self) -> float:
        """Return the lower end of the 95 % interval, 0 if n is 0."""
        return wilson_interval(self.share * self.n, self.n).lower

    @property
    def high(self) -> float:
        """Return the upper end of the 95 % interval, 1 if n is 0."""
        return wilson_interval(self.share * self.n, self.n).upper

    def change_from(self, before: Rate) -> str:
        """Return worse, better or same, by counts and without a test; empty if either has no trials."""
        if not (before.n and self.n):
            return ""
        if before.share == self.share:
            return "same"
        return "worse" if self.share < before.share else "better"

    def all_of(self, k: int) -> float | None:
        """Return pass^k, the chance that k trials drawn from these all pass; None below k trials."""
        return pass_hat_k(self.passed, self.n, k)

    def any_of(self, k: int) -> float | None:
        """Return pass@k, the chance that at least one of k trials drawn from these passes; None below k trials."""
        return pass_at_k(self.passed, self.n, k)


@dataclass(frozen=True)
class ScenarioPair:
    """A scenario on two sides, such as a baseline and a run, by the outcomes of its trials."""

    key: str
    before: tuple[str, ...]
    """Empty if this side has no trials of it that count."""
    now: tuple[str, ...]
    changed: Reasons = field(default=(), kw_only=True)
    """The parts that differ, so that it isn't comparable."""

    @cached_property
    def rates(self) -> tuple[Rate, Rate]:
        return Rate.of(self.before), Rate.of(self.now)

    @property
    def gain(self) -> float:
        """Return by how much its pass rate rose, from -1 to 1; a side without results counts as 0."""
        before, now = self.rates
        return now.share - before.share

    @property
    def change(self) -> str:
        """Return its change by counts, without a test, as a state.

        `worse`, `better` or `same`; `unmeasured` if a side has only errors, `incomparable` if the scenario changed,
        `added` or `removed` if a side lacks it, empty if both do.
        """
        if not (self.before and self.now):
            return "removed" if self.before else "added" if self.now else ""
        return "incomparable" if self.changed else self.rates[1].change_from(self.rates[0]) or "unmeasured"


class CountedRun(Protocol):
    """A run's totals, of a model or a row."""

    @property
    def passed(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def pass_rate(self) -> float | None: ...


def run_rate(run: CountedRun) -> Rate:
    """Return a run's pass rate: the mean over its scenarios, of an open run the share of its trials so far."""
    return Rate(run.passed, run.passed + run.failed, run.pass_rate)


def rates_of(*runs: Run) -> list[tuple[Run, Rate]]:
    """Return runs with their pass rates."""
    return [(run, run_rate(run)) for run in runs]

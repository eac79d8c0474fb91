"""Judge a run by its suite's release rule: every scenario's next k trials must pass, with a chance of at least so much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from evalhub.lib.numbers import counted
from evaluators.statistics.descriptive import pass_hat_k
from runs.models import Run
from runs.results.digests import digests_of
from scenarios.models import Suite

MET, MISSED, NOT_MEASURED = "met", "missed", "not_measured"
MOST_NAMED = 5


@dataclass(frozen=True)
class ReleaseResult:
    """A run's pass^k, as the mean over its scenarios, beside the threshold."""

    k: int
    threshold: float
    value: float | None
    """None if no scenario has k trials."""
    scenarios: int
    """Scenarios with k trials that passed or failed."""
    too_few_trials: tuple[str, ...]

    @property
    def state(self) -> str:
        if self.too_few_trials or self.value is None:
            return NOT_MEASURED
        return MET if self.value >= self.threshold else MISSED

    @property
    def sentence(self) -> str:
        """Say whether the rule is met, and by which figures."""
        rule = f"Release rule: pass^{self.k} of {self.threshold:.0%} or more"
        if self.state == NOT_MEASURED:
            named = ", ".join(self.too_few_trials[:MOST_NAMED]) or "every scenario"
            more = len(self.too_few_trials) - MOST_NAMED
            named += f" and {more} more" if more > 0 else ""
            return f"{rule}. Not measured: fewer than {counted(self.k, 'trial')} passed or failed of {named}."
        # Rounded down, so that 89.99 % doesn't read as the 90 % it misses.
        shown = int((self.value or 0.0) * 1000) / 10
        word = "Met" if self.state == MET else "Missed"
        return f"{rule}. {word}: {shown:g} % over {counted(self.scenarios, 'scenario')}."

    def as_json(self) -> dict[str, Any]:
        """Return the result for REST and files."""
        return {**vars(self), "state": self.state, "sentence": self.sentence}


def by_rule(suite: Suite, outcomes: Mapping[str, Sequence[str]]) -> ReleaseResult | None:
    """Return the result of finished trials' outcomes by scenario; None if the suite has no rule."""
    if suite.release_k is None or suite.release_threshold is None:
        return None
    return release_result_of(outcomes, k=suite.release_k, threshold=suite.release_threshold)


def release_result_of(outcomes: Mapping[str, Sequence[str]], *, k: int, threshold: float) -> ReleaseResult:
    """Return the result of finished trials' outcomes by scenario."""
    chances = {
        key: pass_hat_k(results.count("pass"), results.count("pass") + results.count("fail"), k)
        for key, results in outcomes.items()
    }
    known = [chance for chance in chances.values() if chance is not None]
    missing = tuple(key for key, chance in chances.items() if chance is None)
    return ReleaseResult(k, threshold, fmean(known) if known else None, len(known), missing)


def release_result(run: Run) -> ReleaseResult | None:
    """Return a closed run's result; None while it is open or without a rule. One query."""
    if run.is_open or run.suite.release_k is None:
        return None
    return by_rule(run.suite, digests_of([run.pk])[run.pk].outcomes)

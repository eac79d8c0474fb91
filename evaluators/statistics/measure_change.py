"""A measure in two runs: how it is compared, and what a comparison says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from evaluators.statistics.significance import Arms


class ChangeVerdict(StrEnum):
    """What a comparison says about a measure, the gravest first."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    CHANGED = "changed"
    """Of a measure without a better direction; a run never has it."""
    SMALL = "small_change"
    EQUIVALENT = "equivalent"
    AS_EXPECTED = "as_expected"
    """Of a run against its line: it lies where the line's runs let it be expected."""
    NO_EVIDENCE = "no_evidence"
    TOO_LITTLE = "too_little"
    NOT_COMPARABLE = "not_comparable"

    @property
    def label(self) -> str:
        """The verdict as people read it."""
        return _LABELS[self]


_LABELS = {
    ChangeVerdict.REGRESSED: "Regressed",
    ChangeVerdict.IMPROVED: "Improved",
    ChangeVerdict.SMALL: "Small change",
    ChangeVerdict.EQUIVALENT: "Equivalent",
    ChangeVerdict.AS_EXPECTED: "As expected",
    ChangeVerdict.CHANGED: "Changed",
    ChangeVerdict.NO_EVIDENCE: "No evidence of change",
    ChangeVerdict.TOO_LITTLE: "Too little data",
    ChangeVerdict.NOT_COMPARABLE: "Not comparable",
}


AS_BEFORE = (ChangeVerdict.EQUIVALENT, ChangeVerdict.AS_EXPECTED, ChangeVerdict.NO_EVIDENCE)
"""*As before*: nothing says that anything changed."""
UNDECIDED = (ChangeVerdict.TOO_LITTLE,)
"""*Undecided*: more trials would decide."""


class Scale(StrEnum):
    """How a measure's change is expressed."""

    POINTS = "points"
    """The difference, for rates and scores from 0 to 1."""
    RELATIVE = "relative"
    """The share by which it grew, for counts, cost and time."""


class ComparisonTest(StrEnum):
    """The test behind a p."""

    NONE = ""
    WITHIN_SCENARIOS = "within_scenarios"
    WITHIN_MOMENTS = "within_moments"
    BOSCHLOO = "boschloo"
    LINE = "line"


@dataclass(frozen=True)
class MeasureRule:
    """How a measure is compared."""

    name: str
    better: str = "higher"
    """`higher`, `lower` or `none`."""
    scale: Scale = Scale.POINTS
    smallest: float = 0.05
    """The smallest effect of interest: a difference from 0 to 1, or a share of the value before."""
    is_outcome: bool = False
    """Each trial passes or fails."""


class Sample(NamedTuple):
    """A measure over one scenario's trials in one run."""

    n: int
    mean: float
    m2: float = 0.0
    """The sum of squared differences from the mean."""


class Spread(NamedTuple):
    """How much a measure varies from run to run of a line."""

    deviation: float
    runs: int


def arms_of(old: Sample, new: Sample) -> Arms:
    """Return the passes and trials of a scenario in both runs."""
    return Arms(round(old.mean * old.n), old.n, round(new.mean * new.n), new.n)


def pool_samples(one: Sample, other: Sample) -> Sample:
    """Return two samples of one scenario as one (Chan, Golub and LeVeque 1983)."""
    n, apart = one.n + other.n, other.mean - one.mean
    mean = one.mean + apart * other.n / n
    return Sample(n, mean, one.m2 + other.m2 + apart**2 * one.n * other.n / n)


Pairs = Sequence[tuple[Sample, Sample]]
"""Comparable scenarios, before and after."""


@dataclass(frozen=True)
class MeasureChange:
    """One measure in two runs, over the scenarios that can be compared."""

    rule: MeasureRule
    verdict: ChangeVerdict
    scenarios: int
    trials: tuple[int, int] = (0, 0)
    before: float | None = None
    """The mean of the scenarios' means, as `after`."""
    after: float | None = None
    worse: int = 0
    """How many scenarios changed for the worse; for a measure without direction, how many fell."""
    better: int = 0
    effect: float | None = None
    """After minus before; on the relative scale, the share by which the value grew."""
    lower: float | None = None
    """The lower end of the effect's 95 % interval."""
    upper: float | None = None
    test: ComparisonTest = ComparisonTest.NONE
    p: float | None = None
    corrected: float | None = None
    """p after the correction for everything that is tested together: below 0.05 it is significant."""
    detectable: float | None = None
    """The smallest effect that is called one in 80 % of such comparisons; None where none is."""
    most_found: float | None = None
    """Of a pass rate, the share of such comparisons in which the loss of every pass is found; 0 where no result can
    be a change."""
    more_trials: int | None = None
    """Trials that each scenario needs beside its own, in both runs, to find one and a half times the smallest effect
    of interest in 80 % of cases; None where 1,000 are too few."""
    below_threshold: bool = False
    """The change is significant and smaller than the smallest effect of interest."""
    regressed: tuple[str, ...] = ()
    """Of the suite's pass rate, the scenarios whose own pass rate regressed, by key."""
    improved: tuple[str, ...] = ()
    """Of the suite's pass rate, the scenarios whose own pass rate improved, by key."""
    runs_before: int = 1
    """How many runs the reference has: more than one for a line, to which only the new side can add trials."""
    window: int = 1
    """Of a line, how many of the newest runs changed together; the sizes are theirs."""
    expected: tuple[float, float] | None = None
    """Of a measure from 0 to 1 against a line, where 95 % of such runs are expected."""

    @property
    def is_about_these_scenarios(self) -> bool:
        """Whether the p says nothing about other scenarios."""
        return self.test is not ComparisonTest.NONE


def count_changes(rule: MeasureRule, pairs: Pairs, differences: Sequence[float]) -> MeasureChange:
    """Return a change before any test: trials, means, and how many scenarios changed either way."""
    sign = -1.0 if rule.better == "lower" else 1.0
    return MeasureChange(
        rule,
        ChangeVerdict.TOO_LITTLE,
        len(pairs),
        (sum(old.n for old, _ in pairs), sum(new.n for _, new in pairs)),
        before=sum(old.mean for old, _ in pairs) / len(pairs),
        after=sum(new.mean for _, new in pairs) / len(pairs),
        worse=sum(sign * each < 0 for each in differences),
        better=sum(sign * each > 0 for each in differences),
    )

"""A measure in two runs: how it is compared, and what a comparison says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, NamedTuple

from evalhub.lib.value import Value
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
    """Of a run against its line: it is within the range that the line's runs predict."""
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


DECIDED = (ChangeVerdict.REGRESSED, ChangeVerdict.IMPROVED)
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
class MeasureRule(Value):
    """How a measure is compared."""

    measure: str
    better_is: str = "higher"
    """higher, lower or none."""
    scale: Scale = Scale.POINTS
    """points: effects are differences from 0 to 1; relative: shares of the value before."""
    smallest_effect: float = 0.05
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


@dataclass(frozen=True, kw_only=True)
class MeasureChange(MeasureRule):
    """A measure in two runs, over the scenarios that can be compared."""

    verdict: ChangeVerdict
    scenarios: int
    trials: tuple[int, int] = (0, 0)
    """Trials of the reference (all runs of a line together), and of the run."""
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
    p_corrected: float | None = None
    """Below 0.05 it is significant: corrected for everything that is tested together."""
    detectable: float | None = None
    """The smallest effect found in 80 % of such comparisons; null if none is."""
    most_found: float | None = None
    """Pass rates only: the share of such comparisons that find a fall to 0 %. 0: no result can be significant."""
    more_trials: int | None = None
    """Trials that each scenario needs more in both runs to find one and a half times the smallest effect in 80 % of
    cases; null if 1,000 are too few, and against a line."""
    below_threshold: bool = False
    """The change is significant and smaller than the smallest effect of interest."""
    broke: tuple[str, ...] = ()
    """Suite's pass rate only: scenarios that regressed."""
    mended: tuple[str, ...] = ()
    """Suite's pass rate only: scenarios that improved."""
    runs_before: int = 1
    """Number of runs in the reference; more than 1 for a line."""
    window: int = 1
    """Against a line, how many of the newest runs changed together; the sizes are theirs."""
    expected: tuple[float, float] | None = None
    """The expected range of a rate or score against a line (95 %), from 0 to 1."""

    @property
    def is_about_these_scenarios(self) -> bool:
        """Whether the p says nothing about other scenarios."""
        return self.test is not ComparisonTest.NONE


def change_of(rule: MeasureRule, verdict: ChangeVerdict, scenarios: int, **found: Any) -> MeasureChange:
    """Return a change of a measure that is compared by a rule."""
    named = {field.name: getattr(rule, field.name) for field in fields(MeasureRule)}
    return MeasureChange(**named, verdict=verdict, scenarios=scenarios, **found)


def count_changes(rule: MeasureRule, pairs: Pairs, differences: Sequence[float]) -> MeasureChange:
    """Return a change before any test: trials, means, and how many scenarios changed either way."""
    sign = -1.0 if rule.better_is == "lower" else 1.0
    return change_of(
        rule,
        ChangeVerdict.TOO_LITTLE,
        len(pairs),
        trials=(sum(old.n for old, _ in pairs), sum(new.n for _, new in pairs)),
        before=sum(old.mean for old, _ in pairs) / len(pairs),
        after=sum(new.mean for _, new in pairs) / len(pairs),
        worse=sum(sign * each < 0 for each in differences),
        better=sum(sign * each > 0 for each in differences),
    )

"""The scenarios of compared runs: their trials, their change, and the chips that narrow them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from evalhub.web.chips import Facet, Facets, Kinds, count_kinds
from evaluators.statistics.comparability import Reasons
from evaluators.statistics.measure_change import DECIDED, MeasureChange
from runs.compare.first_divergences import DivergingTrials, EndedTrial
from runs.models import Run, Trial
from runs.models.trial import TrialState
from runs.results.rates import Rate


@dataclass(frozen=True)
class ComparedScenario:
    """A scenario in both runs, or in one."""

    key: str
    base: tuple[EndedTrial, ...]
    new: tuple[EndedTrial, ...]
    changed: Reasons
    change: MeasureChange | None = None
    """The test of its pass rate; None if it isn't comparable."""
    diverging: DivergingTrials | None = None
    """Where its failing trial parts ways with a passing one of the base."""

    @property
    def marks(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the dots of both sides."""
        return _outcomes(self.base), _outcomes(self.new)

    @property
    def rates(self) -> tuple[Rate, Rate]:
        return _rate(self.marks[0]), _rate(self.marks[1])

    @property
    def kind(self) -> str:
        """Return its change by counts, as `kind_of`."""
        before, after = self.rates
        return kind_of(before if self.base else None, after if self.new else None, changed=bool(self.changed))

    @property
    def is_comparable(self) -> bool:
        """Return whether both runs have the scenario with the same task, gates, judge and rubric."""
        return bool(self.base and self.new and not self.changed)

    @property
    def is_not_significant(self) -> bool:
        """Return whether its pass rates differ by no more than chance explains, or by an unknown measure of it."""
        return self.kind in ("worse", "better") and not (self.change and self.change.verdict in DECIDED)

    @property
    def word(self) -> str:
        """Return the state that people read: a change by counts, or what its test says."""
        if self.is_not_significant:
            return self.kind
        return {"worse": "regressed", "better": "improved"}.get(self.kind, self.kind)

    @property
    def points(self) -> float:
        """Return the absolute difference of the pass rates in percentage points."""
        before, after = self.rates
        return abs(after.share - before.share) * 100


def kind_of(before: Rate | None, after: Rate | None, *, changed: bool) -> str:
    """Return a scenario's change by counts as a state; one side is None where a run lacks it.

    `unmeasured` if a side has only errors, `incomparable` if the scenario changed.
    """
    if before is None or after is None:
        return "removed" if before else "added"
    return "incomparable" if changed else after.change_from(before) or "unmeasured"


def _outcomes(trials: Sequence[EndedTrial]) -> tuple[str, ...]:
    return tuple([trial.outcome for trial in trials])


def _rate(outcomes: tuple[str, ...]) -> Rate:
    return Rate(outcomes.count("pass"), outcomes.count("pass") + outcomes.count("fail"))


ORDER = ("worse", "better", "unmeasured", "incomparable", "added", "removed", "same")


@dataclass
class ScenarioSide:
    """A scenario in one run."""

    trials: list[EndedTrial] = field(default_factory=list)

    @property
    def rate(self) -> Rate:
        return _rate(self.marks)

    @property
    def marks(self) -> tuple[str, ...]:
        return _outcomes(self.trials)


def sides_of(runs: Sequence[Run], *, later: bool = False) -> dict[int, dict[str, ScenarioSide]]:
    """Return the scenarios of each run that have a finished trial, in the order of the suite. One query.

    `later` says whether the trials of looks and extensions count.
    """
    counted = Trial.objects.filter(run__in=runs, is_retest=False, state=TrialState.FINISHED)
    rows = (counted if later else counted.filter(round=0)).order_by("run", "position", "pk")
    sides: dict[int, dict[str, ScenarioSide]] = {run.pk: {} for run in runs}
    for run, key, pk, outcome, index in rows.values_list("run", "scenario__key", "pk", "outcome", "index"):
        side = sides[run].setdefault(key, ScenarioSide())
        side.trials.append(EndedTrial(pk, outcome, index + 1, run))
    return sides


DIFFERING = "differing"
FACETS: Kinds = {
    "worse": ("Worse", "worse", lambda each: each.kind == "worse"),
    "better": ("Better", "better", lambda each: each.kind == "better"),
    "same": ("Same", "same", lambda each: each.kind == "same"),
    "unmeasured": ("Errors only", "unmeasured", lambda each: each.kind == "unmeasured"),
    "added": ("Only in the new run", "", lambda each: each.kind == "added"),
    "removed": ("Only in the base", "", lambda each: each.kind == "removed"),
    "incomparable": ("Not comparable", "incomparable", lambda each: not each.is_comparable),
    DIFFERING: ("What differs", "", lambda each: each.kind not in ("same", "unmeasured", "incomparable")),
}


def compared_facets(scenarios: Collection[ComparedScenario]) -> Facets:
    """Return the chips with their numbers of scenarios: what differs, then each kind that there is, then all."""
    *counted, differing = count_kinds(scenarios, FACETS)
    whole = Facet("all", "All", len(scenarios))
    return Facets(len(scenarios), (differing, *(chip for chip in counted if chip.n), whole))

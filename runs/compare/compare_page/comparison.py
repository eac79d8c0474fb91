"""Compare two runs: comparability, measures and scenarios.

The scenarios of compared runs: their trials, their change, and the chips that narrow them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evalhub.web.chips import Facet, Facets, Kinds, count_kinds
from evaluators.statistics.comparability import Reasons, describe_incomparable
from evaluators.statistics.looks import Levels
from evaluators.statistics.measure_change import DECIDED, MeasureChange, Sample
from evaluators.statistics.verdict_sentences import p_text
from runs.compare.comparison import compare_chosen, incomparable
from runs.compare.differences import FingerprintDifference, definition_differences, fingerprint_rows
from runs.compare.looks import Extension, levels_of
from runs.compare.lost_scenarios import stored_changes, stored_scenario_changes
from runs.compare.measure_changes import HEADLINE, PASS, compare_runs
from runs.compare.shown_changes import ComparedMeasure, ShownVerdict, shown_verdict
from runs.compare.side_by_side import (
    DivergingTrials,
    EndedTrial,
    FirstDivergences,
    compared_measure,
    first_divergences,
    measures_with_cells,
)
from runs.models import Run, Trial
from runs.models.trial import TrialState
from runs.results.counting import compared_by
from runs.results.rates import Rate, rates_of


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


@dataclass(frozen=True)
class ScenarioValue:
    """A measure of one scenario in both runs."""

    key: str
    base: Sample
    new: Sample

    @property
    def difference(self) -> float:
        return self.new.mean - self.base.mean


@dataclass(frozen=True)
class ComparedRuns:
    """Content of the comparison page."""

    base: Run
    new: Run
    fingerprint: list[FingerprintDifference]
    measures: list[ComparedMeasure]
    scenarios: list[ComparedScenario]
    verdict: ShownVerdict | None
    """None where no scenario can be compared."""
    divergences: FirstDivergences = field(default_factory=FirstDivergences)
    levels: Levels | None = None
    """The levels of a comparison to which trials were added after a look; None for any other."""

    @property
    def name(self) -> str:
        """Return what files about it are called."""
        return f"runs-{self.base.pk}-{self.new.pk}"

    @property
    def level_texts(self) -> tuple[str, ...]:
        """Return the levels of the pass rate and of scenarios as texts; empty where nothing was added."""
        return tuple(map(p_text, self.levels)) if self.levels else ()

    @property
    def apart(self) -> list[tuple[Run, Rate]]:
        """Return both runs with their pass rates if no scenario can be compared, else nothing."""
        return [] if self.comparable else rates_of(self.base, self.new)

    @property
    def no_verdict(self) -> str:
        """Return why there is no verdict, if one of the runs has too many errors."""
        return self.base.no_verdict or self.new.no_verdict

    @property
    def headline(self) -> list[ComparedMeasure]:
        """Return the most important measures."""
        rows = {row.name: row for row in self.measures}
        return [rows[name] for name in HEADLINE if name in rows]

    @property
    def others(self) -> list[ComparedMeasure]:
        """Return all other measures."""
        return [row for row in self.measures if row.name not in HEADLINE]

    @property
    def comparable(self) -> int:
        """Return the scenarios of both runs with the same task, gates, judge and rubric."""
        return sum(each.is_comparable for each in self.scenarios)

    @property
    def changed(self) -> list[ComparedScenario]:
        """Return the scenarios of both runs that changed."""
        return [each for each in self.scenarios if each.changed]

    @property
    def not_comparable(self) -> str:
        """Return how many shared scenarios changed, and in what; empty if none."""
        return describe_incomparable([each.changed for each in self.changed])

    @property
    def compared_by(self) -> str:
        """Return by which exit codes tool use is compared, as a sentence; empty in runs of older releases."""
        return compared_by(self.base.counting, self.new.counting)

    @property
    def one_sided(self) -> int:
        """Return the scenarios of only one run."""
        return sum(not (each.base and each.new) for each in self.scenarios)


def scenario_values(
    base: Run, new: Run, measure: str, extensions: Sequence[Extension] = ()
) -> list[ScenarioValue]:
    """Return a measure's values by scenario, the worst change first; none if it isn't compared. One to three queries."""
    layer, _, name = measure.partition("/")
    if not (layer and name):
        return []
    (compared,) = compare_runs(base, [new], [measure], extensions=extensions)
    if measure not in compared.samples:
        return []
    rule, before, after = compared.samples[measure]
    values = [ScenarioValue(key, before[key], after[key]) for key in after if key in before]
    return sorted(values, key=lambda each: -each.difference if rule.better_is == "lower" else each.difference)


def compare_two_runs(base: Run, new: Run, extensions: Sequence[Extension] = ()) -> ComparedRuns:
    """Return two runs side by side, differences first.

    Six queries; up to two more where the runs' suite versions differ, and up to ten where they did not run in turn.
    """
    extended = any(each.looks for each in extensions)
    stored = None if extended else _read_stored(base, new)
    changes, by_key, levels = stored or _compute(base, new, extensions)
    sides = sides_of([base, new], later=levels_of(base, new, extensions) is not None)
    before, after = sides[base.pk], sides[new.pk]
    reasons = incomparable(base, new)
    scenarios = [
        ComparedScenario(
            key,
            tuple(before[key].trials) if key in before else (),
            tuple(after[key].trials) if key in after else (),
            reasons.get(key, ()) if key in before and key in after else (),
            by_key.get(key),
        )
        for key in dict.fromkeys([*after, *before])
    ]
    divergences = first_divergences(
        [base.pk, new.pk], {each.key: (each.base, each.new) for each in scenarios if each.is_comparable}
    )
    scenarios = [replace(each, diverging=divergences.scenarios.get(each.key)) for each in scenarios]
    scenarios.sort(key=lambda each: (ORDER.index(each.kind), -each.points))
    fingerprint = [*find_edits(base, new), *fingerprint_rows(base, new)]
    return ComparedRuns(
        *(base, new, fingerprint, _measures(base, new, changes), scenarios, shown_verdict(changes)),
        *(divergences, levels if extended else None),
    )


Changes = tuple[Sequence[MeasureChange], Mapping[str, MeasureChange], Levels | None]
"""The measures' changes, headline first, the pass rate's by scenario, and the levels of pooled trials."""


def _read_stored(base: Run, new: Run) -> Changes | None:
    """Return the comparison stored when the newer run closed; None unless the other run alone is its reference."""
    if new.baseline_id != base.pk or new.old_side.get("runs"):
        return None
    stored = stored_changes(new.pk)
    return (stored, stored_scenario_changes(new.pk), None) if stored else None


def _compute(base: Run, new: Run, extensions: Sequence[Extension]) -> Changes:
    compared = compare_chosen(base, new, extensions)
    return [*compared.headline, *compared.others], compared.scenarios, compared.levels


def _measures(base: Run, new: Run, changes: Sequence[MeasureChange]) -> list[ComparedMeasure]:
    by_name = {change.measure: change for change in changes if change.scenarios}
    rows = [
        compared_measure(measure, cells, by_name.get(str(measure)))
        for measure, cells in measures_with_cells([base, new])
    ]
    # Trial totals come before layer measures; the pass rate comes first.
    return sorted(rows, key=lambda row: (not row.name.startswith("trial/"), row.name != PASS))


def find_edits(base: Run, new: Run) -> list[FingerprintDifference]:
    """Return the edits of the runs' target and judges. One query; expects their target versions to be loaded."""
    return [*_in_target(base, new), *_in_judges(base, new)]


def _in_target(base: Run, new: Run) -> list[FingerprintDifference]:
    before, after = base.target_version, new.target_version
    if base.target_id != new.target_id or before is None or after is None or before == after:
        return []
    return definition_differences("Target's", before.definition, after.definition)


def _in_judges(base: Run, new: Run) -> list[FingerprintDifference]:
    """Return the edits of the judges that both runs could use."""
    definitions: dict[int, dict[str, dict[str, Any]]] = {base.pk: {}, new.pk: {}}
    columns = ("run_id", "targetversion__target__name", "targetversion__definition")
    for run, name, definition in Run.judge_versions.through.objects.filter(run__in=definitions).values_list(
        *columns
    ):
        definitions[run][name] = definition
    before, after = definitions[base.pk], definitions[new.pk]
    several = len(before | after) > 1
    return [
        difference
        for name in sorted(before.keys() & after.keys())
        for difference in definition_differences(
            f"Judge {name}'s" if several else "Judge's", before[name], after[name]
        )
    ]

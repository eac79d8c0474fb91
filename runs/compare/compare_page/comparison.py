"""Compare two runs: comparability, measures and scenarios, and the chips that narrow the scenarios."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evalhub.web.chips import Facet, Facets, Kinds, count_kinds
from evaluators.statistics.comparability import Reasons, describe_incomparable
from evaluators.statistics.looks import Levels
from evaluators.statistics.measure_change import DECIDED, MeasureChange, Sample
from evaluators.statistics.verdict_sentences import p_text
from runs.compare.comparison import compare_chosen, find_incomparable
from runs.compare.differences import FingerprintDifference, definition_differences, fingerprint_rows
from runs.compare.looks import Extension, read_levels
from runs.compare.lost_scenarios import changes_of_run, stored_changes
from runs.compare.measure_changes import HEADLINE, PASS, compare_with_first
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
from runs.results.rates import Rate, ScenarioPair, rates_of


@dataclass(frozen=True)
class ComparedScenario(ScenarioPair):
    """A scenario in both runs, or in one."""

    base: Sequence[EndedTrial]
    new: Sequence[EndedTrial]
    tested: MeasureChange | None = None
    """The test of its pass rate; None if it isn't comparable."""
    diverging: DivergingTrials | None = None
    """Where its failing trial parts ways with a passing one of the base."""

    @property
    def is_comparable(self) -> bool:
        """Return whether both runs have the scenario with the same task, gates, judge and rubric."""
        return bool(self.before and self.now and not self.changed)

    @property
    def is_not_significant(self) -> bool:
        """Return whether its pass rates differ by no more than chance explains, or by an unknown measure of it."""
        return self.change in ("worse", "better") and not (self.tested and self.tested.verdict in DECIDED)

    @property
    def word(self) -> str:
        """Return the state that people read: a change by counts, or what its test says."""
        if self.is_not_significant:
            return self.change
        return {"worse": "regressed", "better": "improved"}.get(self.change, self.change)


ORDER = ("worse", "better", "unmeasured", "incomparable", "added", "removed", "same")


EndedTrials = dict[str, list[EndedTrial]]
"""A run's finished trials by scenario key."""


def ended_trials(runs: Sequence[Run], *, later: bool = False) -> dict[int, EndedTrials]:
    """Return each run's finished trials by scenario, in the order of the suite. One query.

    `later` says whether the trials of looks and extensions count.
    """
    counted = Trial.objects.filter(run__in=runs, is_retest=False, state=TrialState.FINISHED)
    rows = (counted if later else counted.filter(round=0)).order_by("run", "position", "pk")
    ended: dict[int, EndedTrials] = {run.pk: {} for run in runs}
    for run, key, pk, outcome, index in rows.values_list("run", "scenario__key", "pk", "outcome", "index"):
        ended[run].setdefault(key, []).append(EndedTrial(pk, outcome, index + 1, run))
    return ended


def compare_trials(
    key: str,
    base: EndedTrials,
    new: EndedTrials,
    changed: Mapping[str, Reasons],
    tested: MeasureChange | None = None,
) -> ComparedScenario:
    """Return a scenario of two runs."""
    before, now = base.get(key, []), new.get(key, [])
    reasons = changed.get(key, ()) if before and now else ()
    return ComparedScenario(key, _outcomes(before), _outcomes(now), before, now, tested, changed=reasons)


def _outcomes(trials: Sequence[EndedTrial]) -> tuple[str, ...]:
    return tuple([trial.outcome for trial in trials])


DIFFERING = "differing"
FACETS: Kinds = {
    "worse": ("Worse", "worse", lambda each: each.change == "worse"),
    "better": ("Better", "better", lambda each: each.change == "better"),
    "same": ("Same", "same", lambda each: each.change == "same"),
    "unmeasured": ("Errors only", "unmeasured", lambda each: each.change == "unmeasured"),
    "added": ("Only in the new run", "", lambda each: each.change == "added"),
    "removed": ("Only in the base", "", lambda each: each.change == "removed"),
    "incomparable": ("Not comparable", "incomparable", lambda each: not each.is_comparable),
    DIFFERING: ("What differs", "", lambda each: each.change not in ("same", "unmeasured", "incomparable")),
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
    (compared,) = compare_with_first(base, [new], [measure], extensions=extensions)
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
    ended = ended_trials([base, new], later=read_levels(base, new, extensions) is not None)
    before, after = ended[base.pk], ended[new.pk]
    reasons = find_incomparable(base, new)
    scenarios = [
        compare_trials(key, before, after, reasons, by_key.get(key))
        for key in dict.fromkeys([*after, *before])
    ]
    divergences = first_divergences(
        [base.pk, new.pk], {each.key: (each.base, each.new) for each in scenarios if each.is_comparable}
    )
    scenarios = [replace(each, diverging=divergences.scenarios.get(each.key)) for each in scenarios]
    scenarios.sort(key=lambda each: (ORDER.index(each.change), -abs(each.gain)))
    fingerprint = [*_in_target(base, new), *_in_judges(base, new), *fingerprint_rows(base, new)]
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
    return (stored, changes_of_run(new.pk), None) if stored else None


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


def _in_target(base: Run, new: Run) -> list[FingerprintDifference]:
    """Return the edits of the runs' target. Expects their target versions to be loaded."""
    before, after = base.target_version, new.target_version
    if base.target_id != new.target_id or before is None or after is None or before == after:
        return []
    return definition_differences("Target's", before.definition, after.definition)


def _in_judges(base: Run, new: Run) -> list[FingerprintDifference]:
    """Return the edits of the judges that both runs could use. One query."""
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

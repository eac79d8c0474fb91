"""Compare two runs: comparability, measures and scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evalhub.teams.models import Project
from evalhub.web.paging import key_of
from evaluators.comparability import Reasons, Standard, outcome_parts, sentence
from evaluators.regression import MeasureChange
from runs.models import Measure, Run, TargetVersion, Trial
from runs.models.trial import TrialState
from runs.pages.changes import ShownChange, ShownVerdict, shown_verdict
from runs.warehouse.differences import Difference, definition_differences, fingerprint_rows
from runs.warehouse.measure_changes import HEADLINE, PASS, compare_run_measures, stored_changes
from runs.warehouse.measures import label_of
from runs.warehouse.rates import Rate
from runs.warehouse.run_list import runs_of
from runs.warehouse.side_by_side import measures_of
from scenarios.differences import PARTS, standard


@dataclass(frozen=True)
class MeasureRow:
    """A measure in both runs."""

    measure: Measure
    base: float | None
    """The mean over the scenarios that can be compared; where none can, over the run's own. None if not measured."""
    new: float | None
    change: ShownChange | None
    """None where no scenario can be compared."""

    @property
    def label(self) -> str:
        return label_of(self.measure)

    @property
    def is_pass_rate(self) -> bool:
        """Return whether values are percentages."""
        return str(self.measure) == PASS


@dataclass(frozen=True)
class ComparedScenario:
    """A scenario in both runs, or in one."""

    key: str
    base: tuple[str, ...]
    new: tuple[str, ...]
    changed: Reasons

    @property
    def rates(self) -> tuple[Rate, Rate]:
        return _rate(self.base), _rate(self.new)

    @property
    def verdict(self) -> str:
        """Return the change by counts; `unmeasured` if a side has only errors, `incomparable` if it changed."""
        before, after = self.rates
        if not self.base or not self.new:
            return "removed" if self.base else "added"
        if self.changed:
            return "incomparable"
        if not before.n or not after.n:
            return "unmeasured"
        if before.share == after.share:
            return "same"
        return "regressed" if after.share < before.share else "improved"

    @property
    def is_comparable(self) -> bool:
        """Return whether both runs have it with the same task, gates, judge and rubric."""
        return bool(self.base and self.new and not self.changed)

    @property
    def points(self) -> float:
        """Return the absolute difference of the pass rates in percentage points."""
        before, after = self.rates
        return abs(after.share - before.share) * 100


def _rate(outcomes: tuple[str, ...]) -> Rate:
    return Rate(outcomes.count("pass"), outcomes.count("pass") + outcomes.count("fail"))


ORDER = ("regressed", "improved", "unmeasured", "incomparable", "added", "removed", "same")


@dataclass(frozen=True)
class ComparedRuns:
    """Content of the comparison page."""

    base: Run
    new: Run
    fingerprint: list[Difference]
    measures: list[MeasureRow]
    scenarios: list[ComparedScenario]
    verdict: ShownVerdict | None
    """None where no scenario can be compared."""

    @property
    def headline(self) -> list[MeasureRow]:
        """Return the most important measures."""
        rows = {str(row.measure): row for row in self.measures}
        return [rows[name] for name in HEADLINE if name in rows]

    @property
    def others(self) -> list[MeasureRow]:
        """Return all other measures."""
        return [row for row in self.measures if str(row.measure) not in HEADLINE]

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
        return sentence([each.changed for each in self.changed])

    @property
    def one_sided(self) -> int:
        """Return the scenarios of only one run."""
        return sum(not (each.base and each.new) for each in self.scenarios)


def two_runs(project: Project, numbers: str) -> tuple[Run, Run] | None:
    """Return the two runs of a comma-separated pair of numbers; None unless both exist and differ."""
    keys = [key_of(word.strip()) for word in numbers.split(",")]
    by_key = {run.pk: run for run in runs_of(project).defer(None).filter(pk__in=[key for key in keys if key])}
    runs = [by_key[key] for key in keys if key in by_key]
    return (runs[0], runs[1]) if len(keys) == len(runs) == 2 and runs[0] != runs[1] else None


def compare_runs(base: Run, new: Run) -> ComparedRuns:
    """Return two runs side by side, differences first.

    Five queries where the newer one's baseline is the other; five more to compare other runs, one if their target
    was edited.
    """
    changes = _changes(base, new)
    measures = _measures(base, new, changes)
    trials = _trials(base, new)
    before, after = trials[base.pk], trials[new.pk]
    scenarios = [_compared(key, before.get(key), after.get(key)) for key in dict.fromkeys([*after, *before])]
    scenarios.sort(key=lambda each: (ORDER.index(each.verdict), -each.points))
    fingerprint = [*edited(base, new), *fingerprint_rows(base, new)]
    return ComparedRuns(base, new, fingerprint, measures, scenarios, shown_verdict(changes))


def _changes(base: Run, new: Run) -> list[MeasureChange]:
    """Return each measure's change: as stored when the newer run closed, else computed."""
    stored = stored_changes(new.pk) if new.baseline_id == base.pk else []
    if stored:
        return stored
    compared = compare_run_measures(base, new)
    return [*compared.headline, *compared.others]


def _measures(base: Run, new: Run, changes: Sequence[MeasureChange]) -> list[MeasureRow]:
    by_name = {change.rule.name: change for change in changes if change.scenarios}
    rows = []
    for measure, cells in measures_of([base, new]):
        change = by_name.get(str(measure))
        own = [cell.mean if cell else None for cell in cells]
        before, after = (change.before, change.after) if change else own
        rows.append(MeasureRow(measure, before, after, ShownChange(change) if change else None))
    # Trial totals come before layer measures; the pass rate comes first.
    return sorted(rows, key=lambda row: (row.measure.layer != "trial", row.measure.name != "pass"))


@dataclass
class _Side:
    """A scenario in one run."""

    standard: Standard
    outcomes: list[str] = field(default_factory=list)


def _trials(*runs: Run) -> dict[int, dict[str, _Side]]:
    """Return the scenarios of each run that have a finished trial, in the order of the suite."""
    columns = (f"scenario_version__{name}" for name in PARTS)
    rows = Trial.objects.filter(run__in=runs, state=TrialState.FINISHED).order_by("position")
    sides: dict[int, dict[str, _Side]] = {run.pk: {} for run in runs}
    for run, key, outcome, *hashes in rows.values_list("run", "scenario__key", "outcome", *columns):
        sides[run].setdefault(key, _Side(standard(hashes))).outcomes.append(outcome)
    return sides


def _compared(key: str, before: _Side | None, after: _Side | None) -> ComparedScenario:
    return ComparedScenario(
        key,
        tuple(before.outcomes) if before else (),
        tuple(after.outcomes) if after else (),
        outcome_parts(before.standard, after.standard) if before and after else (),
    )


def edited(base: Run, new: Run) -> list[Difference]:
    """Return the edits of the runs' target and judges. One query, two if the target was edited."""
    return [*_in_target(base, new), *_in_judges(base, new)]


def _in_target(base: Run, new: Run) -> list[Difference]:
    before, after = base.target_version_id, new.target_version_id
    if base.target_id != new.target_id or before is None or after is None or before == after:
        return []
    definitions = dict(TargetVersion.objects.filter(pk__in=(before, after)).values_list("pk", "definition"))
    return definition_differences("Target's", definitions[before], definitions[after])


def _in_judges(base: Run, new: Run) -> list[Difference]:
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
        each
        for name in sorted(before.keys() & after.keys())
        for each in definition_differences(
            f"Judge {name}'s" if several else "Judge's", before[name], after[name]
        )
    ]

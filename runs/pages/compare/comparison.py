"""Compare two runs: comparability, measures and scenarios."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evalhub.teams.models import Project
from evalhub.web.paging import key_of
from evaluators.comparability import Reasons, Standard, comparability, sentence
from runs.models import Measure, Run, TargetVersion, Trial
from runs.models.measure import Better
from runs.models.trial import TrialState
from runs.warehouse.differences import Difference, definition_differences, fingerprint_rows
from runs.warehouse.rates import Rate
from runs.warehouse.run_list import runs_of
from runs.warehouse.side_by_side import Cell, measures_of
from runs.warehouse.trends import label_of
from scenarios.differences import PARTS, standard


@dataclass(frozen=True)
class MeasureRow:
    """A measure in both runs; a side is None if not measured."""

    measure: Measure
    base: Cell | None
    new: Cell | None

    @property
    def label(self) -> str:
        return label_of(self.measure)

    @property
    def is_pass_rate(self) -> bool:
        """Return whether values are percentages."""
        return str(self.measure) == "trial/pass"

    @property
    def difference(self) -> float | None:
        """Return new minus base, None if a side is missing."""
        return self.new.mean - self.base.mean if self.base and self.new else None

    @property
    def size(self) -> float:
        """Return the absolute difference."""
        return abs(self.difference or 0.0)

    @property
    def direction(self) -> str:
        """Return `better` or `worse` if the measure has a direction; chance is not considered."""
        if not self.difference or self.measure.better == Better.NONE:
            return ""
        return "better" if (self.difference > 0) == (self.measure.better == Better.HIGHER) else "worse"


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


HEADLINE = ("trial/pass", "interaction/first_try_success_rate", "interaction/error_rate", "judge/judge")
"""Measures in the first section."""
ORDER = ("regressed", "improved", "unmeasured", "incomparable", "added", "removed", "same")


@dataclass(frozen=True)
class ComparedRuns:
    """Content of the comparison page."""

    base: Run
    new: Run
    fingerprint: list[Difference]
    measures: list[MeasureRow]
    scenarios: list[ComparedScenario]

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


def two_runs(project: Project, asked: str) -> tuple[Run, Run] | None:
    """Return the two runs of a comma-separated pair of numbers; None unless both exist and differ."""
    keys = [key_of(word.strip()) for word in asked.split(",")]
    by_key = {run.pk: run for run in runs_of(project).defer(None).filter(pk__in=[key for key in keys if key])}
    runs = [by_key[key] for key in keys if key in by_key]
    return (runs[0], runs[1]) if len(keys) == len(runs) == 2 and runs[0] != runs[1] else None


def compare_runs(base: Run, new: Run) -> ComparedRuns:
    """Return two runs side by side, differences first. Four queries, one more if their target was edited."""
    measures = [MeasureRow(measure, *cells) for measure, cells in measures_of([base, new])]
    # Trial totals come before layer measures; the pass rate comes first.
    measures.sort(key=lambda row: (row.measure.layer != "trial", row.measure.name != "pass"))
    trials = _trials(base, new)
    before, after = trials[base.pk], trials[new.pk]
    scenarios = [_compared(key, before.get(key), after.get(key)) for key in dict.fromkeys([*after, *before])]
    scenarios.sort(key=lambda each: (ORDER.index(each.verdict), -each.points))
    fingerprint = [*edited(base, new), *fingerprint_rows(base, new)]
    return ComparedRuns(base, new, fingerprint, measures, scenarios)


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
        comparability(before.standard, after.standard) if before and after else (),
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

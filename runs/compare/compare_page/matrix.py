"""Compare up to ten runs with the first one, as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.compare.compare_page.chosen_runs import numbers_of
from runs.compare.compare_page.compared_scenarios import ScenarioSide, by_counts, sides_of
from runs.compare.fresh_trials import FreshRun, pool_of
from runs.compare.measure_changes import HEADLINE, Pool, compare_pools
from runs.compare.shown_changes import ShownChange
from runs.compare.side_by_side import measures_with_cells
from runs.models import Measure, Run
from runs.results.comparability import outcomes_changed_since
from runs.results.measures import label_of

MOST_WITH_SCENARIOS = 4
"""The most runs whose scenarios are shown one by one."""
SUMMARY = (
    *HEADLINE,
    "trial/seconds",
    "trial/cost_usd",
    "trial/tokens_in",
    "trial/tokens_out",
    "interaction/total_commands",
)
"""The measures of the matrix."""


@dataclass(frozen=True)
class MatrixRun:
    """A column, with the addresses of its menu."""

    run: Run
    base_first: str
    """Run numbers with this one as the base; empty for the base."""
    left: str
    """Run numbers with this one a place to the left; empty if that makes it the base."""
    right: str
    without: str
    """Empty where fewer than two runs would be left."""
    comparable: int = 0
    common: int = 0


@dataclass(frozen=True)
class SummaryCell:
    """A run's value of a measure, and its change against the base."""

    value: float | None
    change: ShownChange | None = None
    """None for the base, and where nothing can be compared."""


@dataclass(frozen=True)
class SummaryRow:
    """A measure over the runs."""

    measure: Measure
    cells: tuple[SummaryCell, ...]

    @property
    def label(self) -> str:
        return label_of(self.measure)


@dataclass(frozen=True)
class ScenarioCell:
    """A scenario's trials in a run."""

    side: ScenarioSide | None
    change: str = ""
    """Against the base, by counts; empty for the base."""


@dataclass(frozen=True)
class MatrixScenario:
    """A scenario over the runs."""

    key: str
    cells: tuple[ScenarioCell, ...]

    @property
    def differs(self) -> bool:
        return any(cell.change in ("worse", "better", "absent") for cell in self.cells)

    @property
    def worst(self) -> float:
        """Return the largest fall of the pass rate against the base."""
        rates = [cell.side.rate.share if cell.side and cell.side.rate.n else None for cell in self.cells]
        base = rates[0] or 0.0
        return max((base - rate for rate in rates[1:] if rate is not None), default=0.0)


@dataclass(frozen=True)
class Matrix:
    """Content of the page that compares several runs."""

    columns: tuple[MatrixRun, ...]
    summary: tuple[SummaryRow, ...] = ()
    scenarios: tuple[MatrixScenario, ...] = ()

    @property
    def numbers(self) -> str:
        return numbers_of([column.run.pk for column in self.columns])


def summary_matrix(runs: Sequence[Run], fresh: Sequence[FreshRun]) -> Matrix:
    """Return the headline measures, cost, time and tokens of each run against the first. Three to five queries."""
    pools = [pool_of(run, fresh) for run in runs]
    compared = compare_pools(pools[0], pools[1:], SUMMARY)
    changes = [
        {change.rule.name: change for change in (*each.headline, *each.others) if change.scenarios}
        for each in compared
    ]
    counts = [(0, 0), *((each.comparable, each.common) for each in compared)]
    rows = []
    for measure, cells in measures_with_cells(runs):
        if str(measure) in SUMMARY:
            found = [None, *(each.get(str(measure)) for each in changes)]
            rows.append(
                SummaryRow(
                    measure,
                    tuple(
                        SummaryCell(
                            change.after if change else cell.mean if cell else None,
                            ShownChange(change) if change else None,
                        )
                        for cell, change in zip(cells, found, strict=True)
                    ),
                )
            )
    rows.sort(key=lambda row: SUMMARY.index(str(row.measure)))
    return Matrix(_columns(runs, counts), tuple(rows))


def scenario_matrix(runs: Sequence[Run], fresh: Sequence[FreshRun]) -> Matrix:
    """Return every scenario's trials in each run, the largest fall against the first run on top. One to four queries."""
    pools: list[Pool] = [pool_of(run, fresh) for run in runs]
    sides = sides_of({key: each.run.pk for each in pools for key in each.keys})
    keys = dict.fromkeys(key for run in runs for key in sides[run.pk])
    reasons = outcomes_changed_since(runs[0], runs[1:])
    rows = [
        MatrixScenario(
            key, _cells([sides[run.pk].get(key) for run in runs], [key in each for each in reasons])
        )
        for key in keys
    ]
    rows.sort(key=lambda row: (not row.differs, -row.worst))
    return Matrix(_columns(runs), scenarios=tuple(rows))


def _cells(sides: Sequence[ScenarioSide | None], changed: Sequence[bool]) -> tuple[ScenarioCell, ...]:
    base, *others = sides
    cells = [
        ScenarioCell(side, _change(base, side, differs))
        for side, differs in zip(others, changed, strict=True)
    ]
    return (ScenarioCell(base), *cells)


def _change(base: ScenarioSide | None, side: ScenarioSide | None, differs: bool) -> str:
    if base is None or side is None:
        return "" if base is side else "absent"
    return "incomparable" if differs else by_counts(base.rate, side.rate)


def _columns(runs: Sequence[Run], counts: Sequence[tuple[int, int]] = ()) -> tuple[MatrixRun, ...]:
    keys = [run.pk for run in runs]
    return tuple(
        MatrixRun(
            run,
            numbers_of([keys[at], *keys[:at], *keys[at + 1 :]]) if at else "",
            _swap(keys, at - 1) if at > 1 else "",
            _swap(keys, at) if 0 < at < len(keys) - 1 else "",
            numbers_of([key for key in keys if key != run.pk]) if len(keys) > 2 else "",
            *(counts[at] if counts else ()),
        )
        for at, run in enumerate(runs)
    )


def _swap(keys: Sequence[int], at: int) -> str:
    """Return the numbers with those at this place and the next one swapped."""
    return numbers_of([*keys[:at], keys[at + 1], keys[at], *keys[at + 2 :]])

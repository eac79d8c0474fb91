"""The tables of the comparison pages as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evalhub.web.csv_export import Cell, Table
from runs.compare.compare_page.compared_scenarios import ComparedScenario
from runs.compare.compare_page.comparison import ComparedRuns
from runs.compare.compare_page.matrix import Matrix
from runs.results.rates import Rate

SCENARIO_COLUMNS = (
    *("scenario", "base_passed", "base_failed", "base_errors", "new_passed", "new_failed", "new_errors"),
    *("difference", "change", "comparable", "changed", "not_significant", "first_difference"),
)


def compared_scenario_table(compared: ComparedRuns, scenarios: Iterable[ComparedScenario]) -> Table:
    """Return the scenarios of a chip; `changed` names the parts that changed."""
    return Table(f"{compared.name}-scenarios", SCENARIO_COLUMNS, (_scenario(each) for each in scenarios))


def _scenario(scenario: ComparedScenario) -> tuple[Cell, ...]:
    before, after = scenario.rates
    difference = after.share - before.share if scenario.is_comparable and before.n and after.n else None
    sides = [side.count(word) for side in scenario.marks for word in ("pass", "fail", "error")]
    apart = scenario.diverging.divergence if scenario.diverging else None
    return (
        *(
            scenario.key,
            *sides,
            difference,
            scenario.kind,
            scenario.is_comparable,
            " ".join(scenario.changed),
        ),
        *(scenario.is_not_significant, apart.label if apart else None),
    )


def matrix_table(matrix: Matrix) -> Table:
    """Return the matrix's measures, one row for each run."""
    header = ("measure", "unit", "run", "value", "difference", "low_95", "high_95", "scale", "verdict")
    return Table("runs-measures", header, _matrix_rows(matrix))


def _matrix_rows(matrix: Matrix) -> Iterator[tuple[Cell, ...]]:
    for row in matrix.summary:
        for column, cell in zip(matrix.columns, row, strict=True):
            change = cell.change.change if cell.change else None
            cells = (
                (change.effect, change.lower, change.upper, change.scale.value, change.verdict.value)
                if change
                else [None] * 5
            )
            yield (cell.name, cell.unit, column.run.pk, cell.new, *cells)


def matrix_scenario_table(matrix: Matrix) -> Table:
    """Return the scenarios' trials by run; `change` is against the base, by counts."""
    header = ("scenario", "run", "passed", "trials", "change")
    rows = (
        (row.key, column.run.pk, rate.passed, rate.n, cell.change or None)
        for row in matrix.scenarios
        for column, cell in zip(matrix.columns, row.cells, strict=True)
        for rate in [cell.side.rate if cell.side else Rate(0, 0)]
    )
    return Table("runs-scenarios", header, rows)

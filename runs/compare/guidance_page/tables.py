"""The tables of the guidance pages as CSV."""

from __future__ import annotations

from collections.abc import Iterator

from evalhub.web.csv_export import Cell, Table
from runs.compare.guidance.guidance_matrix import GuidanceMatrix, ScenarioMeans
from runs.compare.guidance_page.against import GuidanceAgainst

MATRIX_COLUMNS = (
    *("tool_version", "guidance", "guidance_id", "runs", "passed", "failed"),
    *("pass_rate", "pass_rate_low", "pass_rate_high", "first_try", "first_try_low", "first_try_high"),
    *("cost_usd", "cost_usd_low", "cost_usd_high", "older_runs"),
)


def guidance_matrix_table(slug: str, matrix: GuidanceMatrix) -> Table:
    """Return a row for each pair of tool and guidance version that ran; rates are from 0 to 1."""
    return Table(f"{slug}-guidance", MATRIX_COLUMNS, _cells(matrix))


def _cells(matrix: GuidanceMatrix) -> Iterator[tuple[Cell, ...]]:
    for tool, cells in matrix.rows:
        for guidance, cell in zip(matrix.guidance, cells, strict=True):
            if cell is None:
                continue
            rate = cell.rate
            yield (
                *(tool, str(guidance), guidance.pk, len(cell.runs), rate.passed, rate.n - rate.passed),
                *((rate.share, rate.low, rate.high) if rate.n else [None] * 3),
                *_three(cell.first_try),
                *_three(cell.cost),
                cell.older,
            )


def _three(measured: ScenarioMeans) -> tuple[Cell, Cell, Cell]:
    low, high = measured.interval or (None, None)
    return measured.mean, low, high


MEASURE_COLUMNS = (
    *("measure", "a", "b", "difference", "low_95", "high_95", "scale", "verdict"),
    *("scenarios", "a_trials", "b_trials"),
)


def guidance_measure_table(page: GuidanceAgainst) -> Table:
    """Return the measures of both versions, headline first; on the relative scale differences are shares of A."""
    shown = [*page.verdict.headline, *page.verdict.others] if page.verdict else []
    changes = [each.change for each in shown]
    rows = (
        (
            *(change.rule.name, change.before, change.after, change.effect, change.lower, change.upper),
            *(change.rule.scale.value, change.verdict.value, change.scenarios, *change.trials),
        )
        for change in changes
    )
    return Table(f"{_name(page)}-measures", MEASURE_COLUMNS, rows)


SCENARIO_COLUMNS = (
    *("scenario", "a", "b", "difference", "a_trials", "b_trials"),
    *("a_judge", "a_reasons", "b_judge", "b_reasons"),
)


def guidance_scenario_table(page: GuidanceAgainst) -> Table:
    """Return the scenarios of both versions by change; the judge's reasons are those that the page shows."""
    rows = (
        (
            *(scenario.key, change.before, change.after, change.effect, *change.trials),
            *(
                cell
                for side in (scenario.before, scenario.after)
                for cell in ((side.score, side.text) if side else (None, None))
            ),
        )
        for scenario in page.scenarios
        for change in [scenario.change.change]
    )
    return Table(f"{_name(page)}-scenarios", SCENARIO_COLUMNS, rows)


def _name(page: GuidanceAgainst) -> str:
    return f"guidance-{page.before.pk}-{page.after.pk}"

"""The tables of the guidance pages as CSV."""

from __future__ import annotations

from evalhub.web.csv_export import Table
from runs.compare.guidance_page.against import GuidanceAgainst

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
            *(change.measure, change.before, change.after, change.effect, change.lower, change.upper),
            *(change.scale.value, change.verdict.value, change.scenarios, *change.trials),
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

"""The tables of the guidance pages as CSV."""

from __future__ import annotations

from evalhub.web.csv_export import Table
from runs.compare.guidance_page.against import GuidanceAgainst

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
    return Table(f"{page.name}-scenarios", SCENARIO_COLUMNS, rows)

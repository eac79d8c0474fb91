"""The regressions queue as CSV."""

from __future__ import annotations

from collections.abc import Iterator

from evalhub.teams.models import Project
from evalhub.web.csv_export import Cell, Table
from runs.pages.regressions.alerts import AlertCard, Lost, alert_page
from runs.warehouse.alert_filters import AlertListFilters

COLUMNS = (
    *("alert", "state", "run", "baseline", "suite", "target", "model", "measures", "scenario"),
    *("pass_rate_before", "pass_rate_after", "since_run", "assignee", "due", "created", "first_triaged"),
    *("note", "link"),
)


def regression_table(project: Project, state: str, filters: AlertListFilters) -> Table:
    """Return all matching alerts of a state, newest first: a row for each scenario that passes less often."""
    return Table(f"{project.slug}-regressions-{state}", COLUMNS, _rows(project, state, filters))


def _rows(project: Project, state: str, filters: AlertListFilters) -> Iterator[tuple[Cell, ...]]:
    before = ""
    while True:
        page, cards = alert_page(project, state, filters, before)
        for card in cards:
            yield from (_row(card, lost) for lost in card.lost or (None,))
        if page.before is None:
            return
        before = str(page.before)


def _row(card: AlertCard, lost: Lost | None) -> tuple[Cell, ...]:
    alert, run = card.alert, card.alert.run
    scenario = (lost.key, lost.before, lost.after, lost.since) if lost else (None,) * 4
    return (
        *(alert.pk, alert.state, run.pk, run.baseline_id, run.suite.slug, run.target.name, run.model),
        *(" ".join(each.change.rule.name for each in card.regressed), *scenario),
        *(alert.assignee.get_username() if alert.assignee else None, alert.due, alert.created),
        *(alert.first_triaged, alert.note, alert.link),
    )

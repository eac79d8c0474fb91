"""The table of the suites page as CSV."""

from __future__ import annotations

from collections.abc import Iterable

from evalhub.teams.models import Project
from evalhub.web.csv_export import Cell, Table
from runs.pages.suites.suite_list import SuiteRow

COLUMNS = (
    *("suite", "name", "format", "version", "scenarios", "layers", "last_run", "last_run_state"),
    *("last_run_outcome", "last_run_verdict", "passed", "failed", "pass_rate", "last_run_created"),
    *("uploaded", "by"),
)


def suite_table(project: Project, rows: Iterable[SuiteRow]) -> Table:
    """Return the matching suites with their newest version and run."""
    return Table(f"{project.slug}-suites", COLUMNS, (_row(row) for row in rows))


def _row(row: SuiteRow) -> tuple[Cell, ...]:
    run, rate = (row.latest.run, row.latest.rate) if row.latest else (None, None)
    version = row.version
    return (
        *(row.suite.slug, row.suite.name, row.suite.format, version.number if version else None),
        *(row.scenarios, " ".join(row.layers)),
        *((run.id, run.state, run.outcome, run.verdict, run.passed, run.failed) if run else (None,) * 6),
        *(rate.share if rate and rate.n else None, run.created if run else None),
        *(version.created if version else None,),
        *(version.created_by.get_username() if version and version.created_by else None,),
    )

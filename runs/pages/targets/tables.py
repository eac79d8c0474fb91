"""The tables of the targets page as CSV."""

from __future__ import annotations

from collections.abc import Iterable

from evalhub.teams.models import Project
from evalhub.web.csv_export import Table
from runs.pages.targets.target_list import TargetRow, WorkerRow

TARGET_COLUMNS = (
    *("target", "state", "provider", "model", "workers", "judge", "labels", "trials_7_days", "errors_7_days"),
    "checked",
)
WORKER_COLUMNS = ("worker", "state", "lanes", "labels", "sandbox", "version", "seen")


def target_table(project: Project, rows: Iterable[TargetRow]) -> Table:
    """Return the targets; `workers` is the largest number of trials at once."""
    cells = (
        (
            *(row.target.name, row.state, row.target.provider, row.model, row.target.workers, row.judge),
            *(" ".join(row.target.labels), row.trials, row.errors, row.check.at if row.check else None),
        )
        for row in rows
    )
    return Table(f"{project.slug}-targets", TARGET_COLUMNS, cells)


def worker_table(rows: Iterable[WorkerRow]) -> Table:
    """Return the workers."""
    cells = (
        (
            *(row.worker.name, row.state, row.worker.lanes, " ".join(row.worker.labels), row.worker.sandbox),
            *(row.worker.version, row.worker.seen),
        )
        for row in rows
    )
    return Table("workers", WORKER_COLUMNS, cells)

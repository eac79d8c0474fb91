"""The tables of a run's page as CSV."""

from __future__ import annotations

from collections.abc import Iterable

from evalhub.web.csv_export import Cell, Table
from runs.models import Run
from runs.pages.run.scenarios import ScenarioRow
from runs.pages.run.subcommands import SubcommandRow

SCENARIO_COLUMNS = (
    *("scenario", "trials", "passed", "failed", "errors", "pass_rate", "baseline_passed", "baseline_failed"),
    *(
        "change",
        "gates_passed",
        "gates",
        "judge",
        "first_try",
        "commands",
        "cost_usd",
        "seconds",
        "class",
        "reasons",
    ),
)


def scenario_table(run: Run, rows: Iterable[ScenarioRow]) -> Table:
    """Return a run's scenarios; `reasons` are those of its failed trials, a line each."""
    return Table(f"run-{run.pk}-scenarios", SCENARIO_COLUMNS, (_scenario(row) for row in rows))


def _scenario(row: ScenarioRow) -> tuple[Cell, ...]:
    reasons = dict.fromkeys(reason for trial in row.trials for reason in trial.lost)
    return (
        *(row.key, len(row.trials), row.rate.passed, row.rate.n - row.rate.passed, row.marks.count("error")),
        *(row.rate.share if row.rate.n else None, row.baseline.count("pass"), row.baseline.count("fail")),
        *(row.change, row.gates.passed, row.gates.n, row.judge, row.first_try, row.commands, row.cost),
        *(row.seconds, row.strip.kind, "\n".join(reasons)),
    )


SUBCOMMAND_COLUMNS = (
    *("subcommand", "calls", "failed", "error_rate", "error_rate_change", "first_try", "retries", "help"),
    *("attempts_to_success", "most_common_error", "times"),
)


def subcommand_table(run: Run, rows: Iterable[SubcommandRow]) -> Table:
    """Return a run's subcommands; rates are from 0 to 1, per call."""
    cells = (
        (
            *(row.name, row.calls, row.failed, row.errors, row.change, row.first_tries, row.retries),
            *(row.helps, row.tries, row.message, row.messages),
        )
        for row in rows
    )
    return Table(f"run-{run.pk}-subcommands", SUBCOMMAND_COLUMNS, cells)

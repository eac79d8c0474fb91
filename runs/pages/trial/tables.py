"""A trial's commands as CSV."""

from __future__ import annotations

from evalhub.web.csv_export import Table
from runs.models import CommandRecord, Trial

COLUMNS = ("n", "command", "subcommand", "exit_code", "failed", "help", "retry_of")


def command_table(trial: Trial) -> Table:
    """Return the tool's commands in their order; `retry_of` is the number of the failed one. One query."""
    commands = CommandRecord.objects.filter(trial=trial).order_by("n")
    return Table(f"trial-{trial.pk}-commands", COLUMNS, commands.values_list(*_FIELDS).iterator())


_FIELDS = ("n", "line", "subcommand", "exit_code", "failed", "help", "retry_of")

"""A trial's commands, and two trials side by side, as CSV."""

from __future__ import annotations

from dataclasses import replace

from evalhub.web.csv_export import Cell, Table
from runs.compare.shown_changes import measure_table
from runs.models import CommandRecord, Trial
from runs.results.trial_page.aligned_commands import DoneCommand
from runs.results.trial_page.side_by_side import TwoTrials

COLUMNS = (
    "n",
    "command",
    "subcommand",
    "exit_code",
    "failed",
    "help",
    "retry_of",
    "failure",
    "end",
    "at_least",
    "seconds",
)


def command_table(trial: Trial) -> Table:
    """Return the tool's commands in their order; `retry_of` is the number of the failed one. One query."""
    commands = CommandRecord.objects.filter(trial=trial).order_by("n")
    return Table(f"trial-{trial.pk}-commands", COLUMNS, commands.values_list(*_FIELDS).iterator())


_FIELDS = (
    "n",
    "line",
    "subcommand",
    "exit_code",
    "failed",
    "help",
    "retry_of",
    "failure",
    "end",
    "at_least",
    "seconds",
)


def aligned_table(two: TwoTrials) -> Table:
    """Return both trials' calls as they are aligned; `same` is whether subcommand and flags are."""
    header = (
        *("n", "base_command", "base_exit_code", "base_failed"),
        *("new_command", "new_exit_code", "new_failed", "same"),
    )
    rows = (
        (number, *_call(pair.base), *_call(pair.new), not (pair.parts_ways or None in pair))
        for number, pair in enumerate(two.pairs, 1)
    )
    return Table(f"{_name(two)}-commands", header, rows)


def _call(done: DoneCommand | None) -> tuple[Cell, ...]:
    return (done.line, done.exit_code, done.failed) if done else (None, None, None)


def gate_table(two: TwoTrials) -> Table:
    """Return the gates of both trials."""
    header = ("layer", "gate", "base_passed", "base_message", "new_passed", "new_message")
    rows = (
        (
            *(pair.gate["layer"], pair.gate["name"]),
            *(
                value
                for side in (pair.base, pair.new)
                for value in ((side.get("passed"), side.get("message") or None) if side else (None, None))
            ),
        )
        for pair in two.gates
    )
    return Table(f"{_name(two)}-gates", header, rows)


def measured_table(two: TwoTrials) -> Table:
    """Return the measures of both trials, with the judge's criteria."""
    criteria = [replace(each, label=f"Judge: {each.label}") for each in two.criteria]
    return measure_table(f"{_name(two)}-measures", [*two.measures, *criteria], tested=False)


def _name(two: TwoTrials) -> str:
    return f"trials-{two.base.trial.pk}-{two.new.trial.pk}"

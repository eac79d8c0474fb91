"""Say which command fails now that passed before, of a failed trial and one that passed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from evaluators.redaction import redact_patterns
from evaluators.tool_use.command_alignment import command_key
from runs.models import CommandRecord, Trial

LONGEST = 160
"""Characters of a command or its message."""


class _Command(NamedTuple):
    n: int
    line: str
    subcommand: str
    exit_code: int | None


def failing_commands(pairs: Collection[tuple[int, int]]) -> dict[int, str]:
    """Return, by failed trial, a clause about its first command that fails now and exited with 0 before.

    `pairs` are trials that passed and failed. Two queries, none without pairs.
    """
    if not pairs:
        return {}
    commands: defaultdict[int, list[_Command]] = defaultdict(list)
    rows = CommandRecord.objects.filter(trial__in={pk for pair in pairs for pk in pair}, help=False)
    for trial, *row in rows.order_by("trial", "n").values_list("trial", *_Command._fields):
        commands[trial].append(_Command(*row))
    found = {
        failed: command
        for passed, failed in pairs
        if (command := _newly_failing(commands[passed], commands[failed]))
    }
    messages = dict(Trial.objects.filter(pk__in=found).values_list("pk", "detail__messages")) if found else {}
    return {trial: _describe(command, messages.get(trial)) for trial, command in found.items()}


def _newly_failing(before: Sequence[_Command], now: Sequence[_Command]) -> _Command | None:
    worked = {_key(each) for each in before if each.exit_code == 0}
    worked -= {_key(each) for each in before if each.exit_code}
    return next((each for each in now if each.exit_code and _key(each) in worked), None)


def _key(command: _Command) -> str:
    return command_key(command.line, command.subcommand)


def _describe(command: _Command, messages: Any) -> str:
    line = redact_patterns(_cut(command.line))
    message = _message(str((messages or {}).get(str(command.n), "")), command.subcommand)
    if not message:
        return f"`{line}`: same command, exit 0 → {command.exit_code}"
    return f"`{line}` exits with {command.exit_code}: {message}; passed before"


def _message(text: str, subcommand: str) -> str:
    """Return a message's first line without the names of tool and subcommand before it."""
    line = next(iter(text.strip().splitlines()), "")
    head, colon, rest = line.partition(": ")
    if colon and subcommand and head.split()[-1:] == [subcommand]:
        line = rest
    return redact_patterns(_cut(line.rstrip(".")))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

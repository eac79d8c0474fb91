"""See what a command pattern finds in a transcript, as layer 1 counts it."""

from __future__ import annotations

from evaluators.model import Command, Transcript
from evaluators.patterns import PatternError, pattern_budget
from evaluators.tool_use.interaction import Interaction, analyse
from evaluators.tool_use.tool import Tool
from evaluators.tool_use.tool_commands import make_matcher


def try_pattern(transcript: Transcript, tool: Tool) -> Interaction:
    """Return what a tool's pattern, else its program's name, finds. Raises `PatternError`."""
    with pattern_budget():
        make_matcher(tool.binary, tool.command_pattern)
        found = analyse(transcript, tool, completed=True)
    if found.problem:
        raise PatternError(found.problem)
    return found


def result_of(command: Command) -> str:
    """Return how a command ended: `help`, `exit 2` or `exit ?`."""
    if command.help:
        return "help"
    return "exit ?" if command.exit_code is None else f"exit {command.exit_code}"


def total_of(found: Interaction) -> str:
    """Return the counts in a sentence."""
    counts = f"{found.total_commands} commands, {found.error_count} failed, {found.help_seeking} help calls"
    return f"{counts} (source: {found.source})"

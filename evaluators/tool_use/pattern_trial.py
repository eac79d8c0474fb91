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
        interaction = analyse(transcript, tool, completed=True)
    if interaction.problem:
        raise PatternError(interaction.problem)
    return interaction


def result_of(command: Command) -> str:
    """Return how a command ended: `help`, `exit 2` or `exit ?`."""
    if command.help:
        return "help"
    return "exit ?" if command.exit_code is None else f"exit {command.exit_code}"


def total_of(interaction: Interaction) -> str:
    """Return the counts in a sentence."""
    counts = f"{interaction.total_commands} commands, {interaction.error_count} failed, {interaction.help_seeking} help calls"
    return f"{counts} (source: {interaction.source})"

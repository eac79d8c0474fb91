"""Name the unknown programs before a tool in an agent's commands, such as `rtk` in `rtk git status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from evaluators.model import Transcript
from evaluators.tool_use.launchers import INTERPRETERS, LAUNCHERS, SHELLS, SUBCOMMANDS, program_name
from evaluators.tool_use.shell import split_commands
from evaluators.tool_use.tool import Tool
from evaluators.tool_use.tool_commands import TEXT_PROGRAMS, make_matcher, mention_pattern

_KNOWN = frozenset([*TEXT_PROGRAMS, *LAUNCHERS, *SUBCOMMANDS, *INTERPRETERS, *SHELLS])
_SHOWN = 5


def count_unknown_launchers(transcript: Transcript, tool: Tool) -> Counter[str]:
    """Return how many commands have the tool right behind a program that may start it, by this program.

    Where a pattern finds the tool's commands, nothing is unknown.
    """
    matcher = make_matcher(tool.binary, tool.command_pattern)
    mention = mention_pattern(matcher) if matcher and not tool.command_pattern else None
    if matcher is None or mention is None:
        return Counter()
    lines = (event.command for event in transcript.events if event.type == "tool_call" and event.command)
    return Counter(
        program for line in lines if mention.search(line) for program in _programs(line, matcher.name)
    )


def describe_launchers(counts: Mapping[str, int], tool: Tool) -> Iterator[str]:
    """Yield a sentence on each program, the most frequent first."""
    for program, count in Counter(counts).most_common(_SHOWN):
        commands = "1 command has" if count == 1 else f"{count} commands have"
        name = program_name(tool.binary)
        yield (
            f"{commands} {name} behind `{program}`, which evalhub doesn't know, and count only if a pattern names "
            f"them, such as `{program} {name} (\\S+)`."
        )


def _programs(line: str, tool: str) -> Iterator[str]:
    for segment in split_commands(line):
        words = segment.words
        if len(words) > 1 and program_name(words[1]) == tool:
            program = program_name(words[0])
            if program not in _KNOWN and program != tool:
                yield program

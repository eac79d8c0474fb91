"""Find trials whose agent called the tool and no call of it started: it isn't where the guidance says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from evaluators.model import Command, Transcript
from evaluators.patterns import PatternError
from evaluators.tool_use.calls import Call, pair_calls
from evaluators.tool_use.interaction import Interaction
from evaluators.tool_use.tool import Tool
from evaluators.tool_use.tool_commands import TooManyCommands, find_in_shell_calls, make_matcher, output_of

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit codes by which a shell says that a program did not start (POSIX, Shell Command Language, 2.8.2)."""
_SAYS_NOT_FOUND = re.compile(r"not found|no such file|not recognized|permission denied", re.IGNORECASE)


class NotStarted(Struct, frozen=True):
    """The calls of a trial's tool, where none of them started."""

    calls: int
    line: str
    """The first one's command line."""
    exit_code: int | None = None
    """The first one's, None if the agent doesn't state it."""

    @property
    def first(self) -> str:
        """Return how the first call ended."""
        ended = "did not start" if self.exit_code is None else f"ended with exit code {self.exit_code}"
        return f"`{self.line}` {ended}"


def find_not_started(
    transcript: Transcript, tool: Tool | None, interaction: Interaction
) -> NotStarted | None:
    """Return the tool's calls by an agent's events if there are some and none of them started; None otherwise.

    `interaction` are the trial's metrics: a call that was recorded has started.
    """
    matcher = make_matcher(tool.binary, tool.command_pattern) if tool and not tool.mcp else None
    is_recorded = interaction.source == "recorded"
    if (
        matcher is None
        or not matcher.name
        or (is_recorded and (interaction.commands or interaction.indirect))
    ):
        return None
    paired = pair_calls(transcript.events)
    by_index = {call.index: call for call in paired}
    if not any(_may_not_have_started(call) for call in paired):
        return None
    try:
        stated = find_in_shell_calls(paired, matcher).commands if is_recorded else interaction.commands
    except (PatternError, TooManyCommands):
        return None
    if not stated or not _none_started(stated, by_index, matcher.name):
        return None
    command = stated[0]
    call = by_index.get(-1 if command.event is None else command.event)
    return NotStarted(
        len(stated), stated[0].line, command.exit_code if call and _stated_code(call) is not None else None
    )


def describe_not_started(found: Sequence[NotStarted], title: str, trials: int) -> str:
    """Return in how many trials no call of a tool started and what to do, in sentences."""
    return (
        f"{title} was not found in {len(found)} of {trials} trial{'s' if trials > 1 else ''}: no call of it started. "
        f"{found[0].first}. Put {title} where the guidance says, or correct the guidance."
    )


def _none_started(commands: Iterable[Command], by_index: dict[int, Call], name: str) -> bool:
    return all(
        command.event in by_index and _did_not_start(command, by_index[command.event], name)
        for command in commands
        if command.event is not None
    ) and all(command.event is not None for command in commands)


def _did_not_start(command: Command, call: Call, name: str) -> bool:
    text = output_of(call) or ""
    says_so = _not_found(name).search(text) is not None
    code = _stated_code(call)
    if command.exit_code in (NOT_FOUND, NOT_EXECUTABLE) and code == command.exit_code:
        # The tool may pass on that code of a program of its own, which its text names.
        return says_so or _SAYS_NOT_FOUND.search(text) is None
    return says_so and (command.exit_code is None or code is None or command.exit_code != 0)


def _may_not_have_started(call: Call) -> bool:
    if call.event.command is None or call.not_run:
        return False
    is_code = _stated_code(call) in (NOT_FOUND, NOT_EXECUTABLE)
    return is_code or _SAYS_NOT_FOUND.search(output_of(call) or "") is not None


def _stated_code(call: Call) -> int | None:
    """Return the exit code that an agent states; None if it states success alone."""
    known = call.result.exit_code if call.result else None
    return call.event.exit_code if known is None else known


@lru_cache(maxsize=256)
def _not_found(name: str) -> re.Pattern[str]:
    """Return what finds a shell's or an interpreter's message that it has no program or script of this name."""
    word = rf"(?:[^\s'\"`‘’:]*/)?{re.escape(name)}(?:\.\w+)?"
    shell = r"\b(?:ba|z|da|k|a|fi)?sh\b[^\n]*:|\benv:"
    return re.compile(
        rf"{shell} *['\"`‘]?{word}['\"`’]?: (?:command not found|not found|no such file or directory|permission denied)"
        rf"|^ *{word}: command not found"
        rf"|(?:command not found|no such file or directory): {word}\b"
        rf"|can't open file '[^'\n]*{re.escape(name)}[^'\n]*'"
        rf"|cannot find module '[^'\n]*{re.escape(name)}[^'\n]*'"
        rf"|\b{word}['’]? is not recognized",
        re.IGNORECASE | re.MULTILINE,
    )

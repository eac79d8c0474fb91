"""Turn recorded executions of the tool into its commands, and find the agent's event of each."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from evaluators.model import Command, FoundCommand
from evaluators.tool_use.calls import Call
from evaluators.tool_use.launchers import program_name
from evaluators.tool_use.recorded_calls import Caller, Origin, RecordedCall, command_texts, origins_of
from evaluators.tool_use.shell import LaunchedCommand
from evaluators.tool_use.shell_ends import Ending
from evaluators.tool_use.tool_commands import (
    Matcher,
    ended_command,
    match_first,
    number_commands,
    remote_commands,
)

_QUOTES = re.compile(r"[\s'\"\\]+")


class RecordedFound(Struct, frozen=True):
    """The model's own calls as commands, and the calls of other programs."""

    commands: tuple[Command, ...]
    indirect_by: Mapping[str, int] = {}


def find_recorded(record: Sequence[RecordedCall], paired: Sequence[Call], matcher: Matcher) -> RecordedFound:
    """Return the commands of a record, with the events of the agent that asked for them.

    A tool that runs elsewhere, behind `ssh` or `docker`, isn't a process of the trial: those commands are the events'.
    Raises `TooManyCommands` or `SlowPattern`.
    """
    origins = origins_of(record)
    model_calls = [(call, origin) for call, origin in origins if origin.caller is Caller.MODEL]
    events = _events_of(model_calls, paired)
    indirect = Counter(origin.program for _, origin in origins if origin.caller is Caller.PROGRAM)
    commands = list(_commands(model_calls, events, matcher))
    commands += remote_commands(paired, matcher)
    return RecordedFound(number_commands(commands), dict(indirect.most_common()))


def _commands(
    model_calls: Sequence[tuple[RecordedCall, Origin]], events: Mapping[int, int], matcher: Matcher
) -> Iterator[tuple[FoundCommand, int | None]]:
    for call, _ in model_calls:
        match = match_first(_stages(call, matcher), matcher)
        if match is None:
            continue
        # What a shell adds to a signal's number (POSIX, Shell Command Language, 2.8.2).
        code = call.exit if call.signal is None else 128 + call.signal
        command = ended_command(match, Ending(code, failed=code not in (None, 0)))
        yield replace(command, end="recorded", seconds=call.seconds), events.get(call.n)


def _stages(call: RecordedCall, matcher: Matcher) -> Iterator[LaunchedCommand]:
    """Yield the call as typed with its program's name, then as the tool's own words."""
    argv = call.argv or (call.path,)
    words = [program_name(call.path), *argv[1:]]
    if call.how == "argument":
        at = next((n for n, word in enumerate(argv[1:], 1) if not word.startswith("-")), 1)
        yield _stage([program_name(argv[0]), *argv[1:]])
        words = [program_name(argv[at]), *argv[at + 1 :]] if at < len(argv) else words
    elif call.how == "module" and "-m" in argv:
        yield _stage([program_name(argv[0]), *argv[1:]])
        words = list(argv[argv.index("-m") + 1 :])
    yield _stage(words, is_script=True)
    if matcher.binary and len(matcher.binary) == 1:
        # A copy or a link by another name is the tool, too.
        yield _stage([matcher.binary[0], *words[1:]])


def _stage(words: Sequence[str], *, is_script: bool = False) -> LaunchedCommand:
    line = shlex.join(words)
    quoted, at = [], 0
    for n, word in enumerate(words):
        text = shlex.quote(word)
        if n and text != word:
            quoted.append((at, at + len(text)))
        at += len(text) + 1
    return LaunchedCommand(tuple(words), line, line, is_script=is_script, quoted=tuple(quoted))


def _events_of(model_calls: Sequence[tuple[RecordedCall, Origin]], paired: Sequence[Call]) -> dict[int, int]:
    """Return the event of each call by its number: one whose command the text of a shell of the call contains.

    Each event belongs to one shell; of equal commands, the first shell takes the first event.
    """
    waiting = [
        (call.index, _squeeze(call.event.command))
        for call in paired
        if call.event.command and not call.not_run
    ]
    taken: dict[int, int] = {}
    """The event of a shell, by its process."""
    events: dict[int, int] = {}
    for call, _ in model_calls:
        for process, text in command_texts(call):
            if process.pid in taken:
                events[call.n] = taken[process.pid]
                break
            at = _place_of(_squeeze(text), waiting)
            if at is not None:
                events[call.n] = taken[process.pid] = waiting.pop(at)[0]
                break
    return events


def _place_of(text: str, waiting: Sequence[tuple[int, str]]) -> int | None:
    """Return the place of the longest of the next commands that the text contains, the first of equal ones.

    A command that is itself a shell with a script may leave only that script to be seen.
    """
    # Events that are searched for the one of a call; agents run few commands at a time.
    near = waiting[:200]
    lengths = {n: len(command) for n, (_, command) in enumerate(near) if command and command in text}
    if lengths:
        return max(lengths, key=lambda n: (lengths[n], -n))
    return next((n for n, (_, command) in enumerate(near) if text and text in command), None)


def _squeeze(text: str) -> str:
    """Return a text without blanks, quotes and backslashes, which agents add when they wrap a command."""
    return _QUOTES.sub("", text)

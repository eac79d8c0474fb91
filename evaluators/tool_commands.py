"""Find the commands of the tool under test in a transcript (llm-tool-test evaluation, Layer 1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

from evaluators.calls import Call
from evaluators.model import Command
from evaluators.patterns import compile_pattern, required_literal
from evaluators.shell import Segment, exit_codes, segments, without_ansi

_EXIT = re.compile(r"\bexit(?:ed)?(?: with)? (?:code|status)[: =]*(\d{1,9})")
_ERROR = re.compile(r"^[\s\[*✗✖❌!]*(?:errors?|failed|fatal)\b(?![: ]*(?:0\b|none\b)|-free)", re.MULTILINE)
_USAGE = re.compile(r"^\s*usage:", re.MULTILINE)


def exit_code_in_text(output: str, *, after_help: bool) -> int:
    """Return the exit code according to the lines after a command.

    It is the number they name, else 1 for an error word at the start of a line (`usage:` counts unless help was
    requested), else 0.
    """
    low = output.lower()
    if "exit" in low and (named := _EXIT.search(low)):
        return int(named[1])
    if ("error" in low or "fail" in low or "fatal" in low) and _ERROR.search(low):
        return 1
    return int(not after_help and "usage:" in low and _USAGE.search(low) is not None)


GENERIC_PATTERN = r"^(?!exit|error|failed)[a-z][\w.-]*\s+(?P<sub>--help|\w\S*)"
"""Matches any lower-case program followed by a word, for transcripts without a known tool. Never a default."""

HELP = "help"
"""The key of help calls."""

WINDOW = 20
"""Lines after a command that are searched for its exit code."""

MOST_COMMANDS = 50_000
"""Commands of a transcript that are counted; an agent can write millions in one line."""

LONGEST_SHELL_LINE = 256_000
"""Characters of a shell call or line that are searched for commands."""

_CACHED_LENGTH = 2_000
"""The longest line in a cache, in characters, to limit memory."""


class FoundCommand(Struct, frozen=True, gc=False):
    """A command of the tool, not numbered yet."""

    line: str
    subcommand: str | None = None
    exit_code: int | None = None
    failed: bool = False
    help: bool = False
    helps: str | None = None
    failure: str = ""


class Matcher(Struct, frozen=True, cache_hash=True):
    """Recognizes a tool's commands by a pattern, else by the program's name."""

    binary: tuple[str, ...] = ()
    pattern: str = ""

    def literal(self) -> str:
        """Return a text that every matching line contains; empty if there is none."""
        return required_literal(self.pattern) if self.pattern else self.binary[0]


class TooManyCommands(Exception):
    """The transcript has more commands than are counted, or may have; the message says why."""


def make_matcher(binary: str, pattern: str) -> Matcher | None:
    """Return a matcher for the tool's commands, None without binary and pattern. Raises `BadPattern`."""
    if pattern.strip():
        compile_pattern(pattern)
        return Matcher(pattern=pattern)
    parts = segments(binary)
    return Matcher(binary=parts[0].words) if parts else None


def number_commands(found: Iterable[tuple[FoundCommand, int | None]]) -> tuple[Command, ...]:
    """Number the commands and mark retries: commands after a failed one of the same subcommand.

    Without a subcommand, the command line is used instead. A success or an unknown result clears the failure.
    Raises `TooManyCommands`.
    """
    failed: dict[str, int] = {}
    commands = []
    for n, (seen, event) in enumerate(found):
        if n == MOST_COMMANDS:
            raise TooManyCommands(
                f"The transcript has more than {MOST_COMMANDS:,} commands. They can't be counted."
            )
        key = HELP if seen.help else seen.subcommand or seen.line
        retry_of = failed.get(key)
        if seen.failed:
            failed[key] = n
        elif retry_of is not None:
            del failed[key]
        commands.append(
            Command(
                n,
                seen.line,
                seen.subcommand,
                seen.exit_code,
                seen.failed,
                seen.help,
                seen.helps,
                retry_of,
                event,
                seen.failure,
            )
        )
    return tuple(commands)


def commands_in_shell_calls(
    paired: Sequence[Call], matcher: Matcher
) -> Iterator[tuple[FoundCommand, int | None]]:
    """Yield the tool's commands in shell calls. Raises `TooManyCommands`."""
    for call in paired:
        line = call.event.command
        if line is not None:
            index = call.index
            for command in commands_in_line(_searched(line, matcher), matcher, call.exit_code):
                yield command, index


def commands_in_tool_calls(paired: Sequence[Call]) -> Iterator[tuple[FoundCommand, int | None]]:
    """Yield every tool call as a command; the tool is the subcommand, name and input are the line."""
    for call in paired:
        name = call.event.name or "tool"
        given = call.event.input if call.event.input is not None else call.event.command
        text = "" if given is None else " " + msgspec.json.encode(given, order="deterministic").decode()
        code = call.exit_code
        yield FoundCommand(name + text, name, code, failed=code not in (None, 0)), call.index


def commands_in_text(text: str, matcher: Matcher) -> Iterator[tuple[FoundCommand, int | None]]:
    """Yield the tool's commands in plain text with line numbers; exit codes come from the next lines.

    Raises `TooManyCommands`.
    """
    text = without_ansi(text)
    places = [
        (start, end, line)
        for start, end, line in _lines_with(text, matcher.literal())
        if _line_matches(line, matcher).matches
    ]
    ends = [start for start, _, _ in places[1:]]
    ends.append(len(text))
    number, counted = 0, 0
    for (start, end, line), following in zip(places, ends, strict=False):
        number += text.count("\n", counted, start)
        counted = start
        window = _FOLLOWING_LINES.match(text, end, following)
        code = exit_code_in_text(
            window.group() if window else "", after_help=_line_matches(line, matcher).helping
        )
        for command in commands_in_line(_searched(line, matcher), matcher, code):
            yield command, number


def _searched(line: str, matcher: Matcher) -> str:
    """Return the part of a line that can have commands. Raises `TooManyCommands` if it is too long to be searched."""
    rest = line[LONGEST_SHELL_LINE:]
    if rest and matcher.literal() in rest:
        raise TooManyCommands(
            f"A command line has more than {LONGEST_SHELL_LINE:,} characters. Its commands can't be counted."
        )
    return line[:LONGEST_SHELL_LINE]


_FOLLOWING_LINES = re.compile(rf"(?:\n[^\n]*){{0,{WINDOW}}}")


def _lines_with(text: str, literal: str) -> Iterator[tuple[int, int, str]]:
    """Yield the lines that contain the literal, with start and end."""
    at = text.find(literal)
    while 0 <= at < len(text):
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield start, end, text[start:end]
        at = text.find(literal, end + 1)


def commands_in_line(line: str, matcher: Matcher, code: int | None) -> tuple[FoundCommand, ...]:
    """Return the tool's commands in a shell line with this exit code. Raises `SlowPattern`."""
    found = _line_matches(line, matcher)
    codes = exit_codes(found.parts, found.matches, code) if found.matches else {}
    return tuple(_command(found.parts[n], match, codes[n]) for n, match in found.matches.items())


class _LineMatches(Struct, frozen=True):
    """The tool's segments of a line, independent of its exit code."""

    parts: tuple[Segment, ...]
    matches: dict[int, tuple[str | None]]
    """Subcommand by index of the tool's segments."""
    helping: bool
    """Whether the last of them asks for help."""


def _line_matches(line: str, matcher: Matcher) -> _LineMatches:
    return _cached_match_line(line, matcher) if len(line) <= _CACHED_LENGTH else _match_line(line, matcher)


def _match_line(line: str, matcher: Matcher) -> _LineMatches:
    parts = segments(line)
    matches = {n: match for n, part in enumerate(parts) if (match := _match(part, matcher)) is not None}
    last = max(matches, default=None)
    return _LineMatches(parts, matches, last is not None and _asks_help(parts[last], matches[last][0]))


_cached_match_line = lru_cache(maxsize=16_384)(_match_line)


def _match(part: Segment, matcher: Matcher) -> tuple[str | None] | None:
    """Return the subcommand in a 1-tuple, or None if the segment is not the tool's."""
    if matcher.pattern:
        return _match_pattern(part, matcher.pattern)
    length = len(matcher.binary)
    if part.words[:length] != matcher.binary:
        return None
    return (part.words[length] if len(part.words) > length else None,)


def _match_pattern(part: Segment, text: str) -> tuple[str | None] | None:
    pattern = compile_pattern(text)
    match = pattern.search(part.text)
    if match is None and part.path:
        # The pattern may match the program's path, which the normalized line lacks.
        match = pattern.search(part.path + part.text[len(part.words[0]) :])
    return None if match is None else (match.sub,)


def _command(part: Segment, match: tuple[str | None], code: int | None) -> FoundCommand:
    (sub,) = match
    if not _asks_help(part, sub):
        return FoundCommand(part.line, sub, code, failed=code not in (None, 0))
    return FoundCommand(part.line, HELP, code, help=True, helps=_asked_about(sub, part.words))


def _asks_help(part: Segment, sub: str | None) -> bool:
    return sub in (HELP, "--help") or "--help" in part.words


def _asked_about(sub: str | None, words: tuple[str, ...]) -> str | None:
    """Return the subcommand of `tool sub --help` or `tool help sub`; None for the tool's own help."""
    if sub != HELP:
        return None if sub == "--help" else sub
    behind = words[words.index(HELP) + 1 :] if HELP in words else ()
    return next((word for word in behind if not word.startswith("-")), None)

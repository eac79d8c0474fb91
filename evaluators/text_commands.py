"""Find the commands of the tool in plain text, a guess (llm-tool-test evaluation, Layer 1, the transcript fallback).

A command needs a sign that it ran: a prompt, the form of a tool call, a fenced block that is followed by its output,
or a line of its own. Lines of the tool's output, usage and error messages are none. All ends are estimated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from evaluators.error_text import exit_code_in_text
from evaluators.patterns import compile_pattern
from evaluators.shell import PROMPT, without_ansi
from evaluators.tool_commands import (
    Found,
    FoundCommand,
    MatchedLine,
    Matcher,
    commands_of,
    match_line,
    number_commands,
    searched,
)

WINDOW = 20
"""Lines after a command that are searched for its exit code."""
LONGEST_JSON_LINE = 256_000

_FENCE = re.compile(r"^\s*(```|~~~)\s*([\w+-]*)\s*$")
_CALL = re.compile(
    r"^\W{0,8}(?:bash|shell|sh|terminal|exec(?:ut(?:e|ed|ing))?|run(?:ning)?|ran|command|tool)(?: command)?"
    r"\s*(?:\(|:)\s*`?(?P<line>[^`]+?)`?\)?\s*$",
    re.IGNORECASE,
)
_TRACE = re.compile(r"^\++ ")
_END_STATED = re.compile(
    r"^\W{0,4}(?:\[?(?:command |process )?exit(?:ed)?\b|output\b|stdout\b|stderr\b|result\b)", re.IGNORECASE
)
_SYNOPSIS = re.compile(r"\w\|\w|<[\w .-]+>|\[[\w<-]|\{\w+,|\.\.\.")
_COLUMNS = re.compile(r"\S {2,}\S")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_VERSION = re.compile(r"^v?\d+(?:\.\d+)+\S*$")
_HEADER = re.compile(
    r"^\s*(?:usage|examples?|commands|options|synopsis|available commands)\b[^:]{0,40}:", re.IGNORECASE
)
_PROSE = frozenset(
    [
        "is",
        "was",
        "has",
        "had",
        "are",
        "were",
        "will",
        "would",
        "can",
        "could",
        "can't",
        "cannot",
        "does",
        "doesn't",
        "did",
        "didn't",
        "should",
        "must",
        "may",
        "might",
        "says",
        "said",
        "returned",
        "returns",
        "printed",
        "prints",
        "shows",
        "showed",
        "supports",
        "failed",
        "fails",
        "worked",
        "works",
        "to",
        "and",
        "or",
        "the",
        "a",
        "an",
        "in",
        "on",
        "for",
        "with",
        "from",
        "also",
        "now",
        "exists",
        "needs",
        "seems",
        "appears",
        "expects",
        "requires",
        "accepts",
        "reports",
        "reported",
        "itself",
    ]
)


def find_in_text(text: str, matcher: Matcher) -> Found:
    """Return the tool's commands in plain text; their events are line numbers. Raises `TooManyCommands`."""
    return Found(number_commands(_commands(without_ansi(text), matcher)))


class _Place(Struct, frozen=True):
    """A line of the text with commands of the tool."""

    start: int
    end: int
    found: MatchedLine | None
    """None for a line of JSON."""


def _commands(text: str, matcher: Matcher) -> Iterator[tuple[FoundCommand, int | None]]:
    places = list(_places(text, matcher))
    following = [*(place.start for place in places[1:]), len(text)]
    number, counted = 0, 0
    for place, stop in zip(places, following, strict=False):
        number += text.count("\n", counted, place.start)
        counted = place.start
        if place.found is None:
            for command in _in_json(text[place.start : place.end], matcher):
                yield command, number
            continue
        window = _FOLLOWING_LINES.match(text, place.end, stop)
        printed = window.group() if window else ""
        code = exit_code_in_text(printed, after_help=place.found.is_help, program=matcher.name)
        for command in commands_of(place.found, matcher, code, printed):
            yield msgspec.structs.replace(command, end="estimated"), number


_FOLLOWING_LINES = re.compile(rf"(?:\n[^\n]*){{0,{WINDOW}}}")


def _places(text: str, matcher: Matcher) -> Iterator[_Place]:
    """Yield the lines that have commands."""
    fences = _fences(text)
    usage_end = _Usage(text)
    for start, end, line in _lines_with(text, matcher.literal()):
        if line.lstrip().startswith(("{", "[")) and _is_json(line):
            if matcher.pattern and _in_json(line, matcher):
                yield _Place(start, end, None)
            continue
        typed, is_shown = _typed(line.rstrip("\r"))
        fence = next((each for each in fences if each[0] <= start < each[1]), None)
        if not is_shown and fence is not None and not fence[2]:
            continue
        found = match_line(searched(typed, matcher), matcher)
        if not found.matches:
            continue
        if is_shown or (_begins_line(found) and not _is_output(typed, found) and not usage_end.covers(start)):
            yield _Place(start, end, found)


def _lines_with(text: str, literal: str) -> Iterator[tuple[int, int, str]]:
    """Yield the lines that contain the literal, with start and end."""
    at = text.find(literal)
    while 0 <= at < len(text):
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield start, end, text[start:end]
        at = text.find(literal, end + 1)


def _typed(line: str) -> tuple[str, bool]:
    """Return the command of a line, and whether a prompt or the form of a call shows that it ran."""
    if (prompt := PROMPT.match(line)) or (prompt := _TRACE.match(line)):
        return line[prompt.end() :], True
    if call := _CALL.match(line):
        return call["line"], True
    return line, False


def _begins_line(found: MatchedLine) -> bool:
    """Return whether a line begins with a command of the tool, or changes folder or sets variables before it."""
    first = min(found.matches)
    before = found.line.segments[:first]
    starts = all(part.words[0] in ("cd", "export", "source", "set") for part in before)
    return starts and found.matches[first].start == 0


def _is_output(line: str, found: MatchedLine) -> bool:
    """Return whether a line is a usage, an error message, a version or prose, not a command."""
    match = found.matches[min(found.matches)]
    words = match.stage.words
    plain = _QUOTED.sub("''", line)
    second = words[1] if len(words) > 1 else ""
    return (
        (match.sub or "").endswith(":")
        or second.endswith((":", ",", "."))
        or _SYNOPSIS.search(plain) is not None
        or _COLUMNS.search(plain.strip()) is not None
        or (len(words) == 2 and _VERSION.match(second) is not None)
        or second.lower() in _PROSE
        or (len(words) > 3 and plain.rstrip().endswith((".", "!", "?")) and not words[-1].startswith("."))
    )


def _fences(text: str) -> list[tuple[int, int, bool]]:
    """Return the fenced blocks: start, end, and whether output or an end follows the commands in them."""
    found: list[tuple[int, int, bool]] = []
    if "```" not in text and "~~~" not in text:
        return found
    opened: tuple[int, list[str]] | None = None
    lines = text.split("\n")
    at = 0
    for n, line in enumerate(lines):
        if _FENCE.match(line):
            if opened is None:
                opened = at, []
            else:
                start, body = opened
                rest = [each for each in lines[n + 1 : n + 4] if each.strip()]
                is_followed = (
                    bool(rest) and (_END_STATED.match(rest[0]) or _is_plain_fence(rest[0])) is not None
                )
                found.append((start, at, is_followed or len([each for each in body if each.strip()]) > 1))
                opened = None
        elif opened is not None:
            opened[1].append(line)
        at += len(line) + 1
    return found


def _is_plain_fence(line: str) -> re.Match[str] | None:
    fence = _FENCE.match(line)
    return fence if fence and fence[2].lower() in ("", "text", "output", "console", "json") else None


class _Usage:
    """Finds the indented lines below `Usage:` and the like."""

    def __init__(self, text: str) -> None:
        self.text = text

    def covers(self, start: int) -> bool:
        """Return whether a line is below such a header, with only indented lines between."""
        text = self.text
        if not text.startswith((" ", "\t"), start):
            return False
        at = start
        for _ in range(WINDOW):
            before = text.rfind("\n", 0, max(0, at - 1)) + 1
            line = text[before : max(0, at - 1)]
            if at == 0 or not line.strip():
                return False
            if _HEADER.match(line):
                return True
            if not line.startswith((" ", "\t")):
                return False
            at = before
        return False


def _is_json(line: str) -> bool:
    try:
        msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return False
    return True


def _in_json(line: str, matcher: Matcher) -> list[FoundCommand]:
    """Return what the pattern finds in a line of an unknown JSON form."""
    match = compile_pattern(matcher.pattern).search(line[:LONGEST_JSON_LINE])
    if match is None:
        return []
    # Such a line may as well be the call as its result.
    return [FoundCommand(match.text, match.sub)]

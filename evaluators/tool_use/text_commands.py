"""Find the commands of the tool in plain text, a guess (llm-tool-test evaluation, Layer 1, the transcript fallback).

A command needs a sign that it ran: a prompt, the form of a tool call, a program that says so, a fenced block or a list
that is followed by its output, or a line of its own. Proposed commands don't count, nor do lines of the tool's output,
usage and error messages. All ends are estimated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Struct

from evalhub.lib.limits import LONGEST_LINE
from evaluators.model import FoundCommand
from evaluators.patterns import compile_pattern
from evaluators.tool_use.error_text import exit_code_in_text, stated_exit_code
from evaluators.tool_use.shell import PROMPT, without_ansi
from evaluators.tool_use.tool_commands import (
    TEXT_PROGRAMS,
    FoundCommands,
    MatchedLine,
    Matcher,
    find_commands_of_line,
    match_line,
    number_commands,
    searchable_part,
)

WINDOW = 20
"""Lines after a command that are searched for its exit code."""

_FENCE = re.compile(r"^\s*(```|~~~)\s*([\w+-]*)\s*$")
_CALL = re.compile(
    r"^\W{0,8}(?:bash|shell|sh|terminal|exec(?:ut(?:e|ed|ing))?|run(?:ning)?|ran|command|tool)(?: command)?"
    r"\s*(?:\(|:)\s*`?(?P<line>[^`]+?)`?\)?\s*$",
    re.IGNORECASE,
)
_RUNNING = re.compile(r"^Running (?P<line>[^\s:].*)$")
"""What aider prints before it runs a command. It prints no exit codes, and proposals look like commands."""
_AIDER = re.compile(r"^Aider v\d", re.MULTILINE)
_SCRIPT_WORDS = frozenset(
    [
        "curl",
        "do",
        "done",
        "else",
        "export",
        "fi",
        "for",
        "git",
        "if",
        "make",
        "node",
        "npm",
        "npx",
        "pip",
        "python",
        "python3",
        "sudo",
        "then",
    ]
)
_TRACE = re.compile(r"^\++ ")
_END_STATED = re.compile(
    r"^\W{0,4}(?:\[?(?:command |process )?(?:exit(?:ed)?|failed with exit code)\b|output\b|stdout\b|stderr\b|result\b)",
    re.IGNORECASE,
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


def find_in_text(text: str, matcher: Matcher) -> FoundCommands:
    """Return the tool's commands in plain text; their events are line numbers. Raises `TooManyCommands`."""
    return FoundCommands(number_commands(_commands(without_ansi(text), matcher)))


Sign = Literal["shown", "said", "fenced", "bare"]


class _Place(Struct, frozen=True):
    """A line of the text with commands of the tool."""

    start: int
    end: int
    found: MatchedLine | None
    """None for a line of JSON."""
    sign: Sign = "bare"
    """Why it is a command: by its form, by what the program says, by its fenced block, or only by standing alone."""


def _commands(text: str, matcher: Matcher) -> Iterator[tuple[FoundCommand, int | None]]:
    places = _ran(list(_places(text, matcher)), text)
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
        if place.sign == "said":
            yield from ((command, number) for command in _stated_commands(place.found, matcher, printed))
            continue
        code = exit_code_in_text(printed, after_help=place.found.is_help, program=matcher.name)
        for command in find_commands_of_line(place.found, matcher, code, printed):
            failed = command.failed or command.printed_error
            yield msgspec.structs.replace(command, end="estimated", failed=failed), number


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
        typed, is_shown = _typed_command(line.rstrip("\r"))
        if said := None if is_shown else _RUNNING.match(typed):
            typed = said["line"]
        fence = next((each for each in fences if each[0] <= start < each[1]), None)
        if not is_shown and fence is not None and not fence[2]:
            continue
        matched_line = match_line(searchable_part(typed, matcher), matcher)
        if not matched_line.matches:
            continue
        if is_shown or (
            _begins_line(matched_line) and not _is_output(typed, matched_line) and not usage_end.covers(start)
        ):
            sign: Sign = "shown" if is_shown else "said" if said else "fenced" if fence else "bare"
            yield _Place(start, end, matched_line, sign)


def _ran(places: list[_Place], text: str) -> list[_Place]:
    """Return the places without commands that are only proposed.

    Where a program says what it ran, nothing else did. Commands listed line by line without any output are a proposal.
    """
    if any(place.sign == "said" for place in places) or _AIDER.search(text):
        return [place for place in places if place.sign in ("shown", "said")]
    remaining: list[_Place] = []
    for block in _blocks(places):
        # A text that begins with them is a log of commands.
        if len(block) == 1 or block[0].start == 0 or _is_followed(text, block[-1].end):
            remaining += block
    return remaining


def _blocks(places: list[_Place]) -> Iterator[list[_Place]]:
    """Yield bare commands on consecutive lines together, all others alone."""
    block: list[_Place] = []
    for place in places:
        continues = block and place.start == block[-1].end + 1 and place.sign == block[-1].sign == "bare"
        if block and not continues:
            yield block
            block = []
        block.append(place)
    if block:
        yield block


def _is_followed(text: str, end: int) -> bool:
    """Return whether the line after this end of a line isn't blank."""
    stop = text.find("\n", end + 1)
    return bool(text[end + 1 : len(text) if stop < 0 else stop].strip())


def _stated_commands(matched_line: MatchedLine, matcher: Matcher, printed: str) -> Iterator[FoundCommand]:
    """Yield the commands of a line that the program says it ran; their ends are unknown unless the text states one."""
    code = stated_exit_code(printed)
    for command in find_commands_of_line(matched_line, matcher, code, None):
        yield msgspec.structs.replace(command, end="estimated")


def _lines_with(text: str, literal: str) -> Iterator[tuple[int, int, str]]:
    """Yield the lines that contain the literal, with start and end."""
    at = text.find(literal)
    while 0 <= at < len(text):
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield start, end, text[start:end]
        at = text.find(literal, end + 1)


def _typed_command(line: str) -> tuple[str, bool]:
    """Return the command of a line, and whether a prompt or the form of a call shows that it ran."""
    if (prompt := PROMPT.match(line)) or (prompt := _TRACE.match(line)):
        return line[prompt.end() :], True
    if call := _CALL.match(line):
        return call["line"], True
    return line, False


def _begins_line(matched_line: MatchedLine) -> bool:
    """Return whether a line begins with a command of the tool, or changes folder or sets variables before it."""
    first = min(matched_line.matches)
    before = matched_line.line.segments[:first]
    starts = all(part.words[0] in ("cd", "export", "source", "set") for part in before)
    return starts and matched_line.matches[first].start == 0


def _is_output(line: str, matched_line: MatchedLine) -> bool:
    """Return whether a line is a usage, an error message, a version or prose, not a command."""
    match = matched_line.matches[min(matched_line.matches)]
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
    fences: list[tuple[int, int, bool]] = []
    if "```" not in text and "~~~" not in text:
        return fences
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
                fences.append((start, at, is_followed or _has_output(body)))
                opened = None
        elif opened is not None:
            opened[1].append(line)
        at += len(line) + 1
    return fences


def _has_output(body: list[str]) -> bool:
    """Return whether a block has more than commands of one program and of the shell."""
    lines = [each.strip() for each in body if each.strip() and not each.lstrip().startswith("#")]
    programs = [
        program
        for program in map(_program, lines)
        if program not in _SCRIPT_WORDS and program not in TEXT_PROGRAMS
    ]
    return len(set(programs)) > 1


def _program(line: str) -> str:
    return line.split()[0].rsplit("/", 1)[-1]


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
    match = compile_pattern(matcher.pattern).search(line[:LONGEST_LINE])
    if match is None:
        return []
    return [FoundCommand(match.text, match.sub, 0, end="estimated")]

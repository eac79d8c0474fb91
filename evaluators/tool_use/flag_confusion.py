"""Read what a tool's `--help` names, and compare the flags and arguments that an agent typed with it.

The layouts of help are those of argparse, click, clap, cobra, docopt and GNU programs: a usage line, sections
with indented entries, and names separated from their descriptions by two blanks. Only failed calls are compared:
a flag that a successful call accepted exists, whatever the help says.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from evalhub.lib.limits import LONGEST_NAME, LONGEST_TEXT
from evaluators.model import Command, Json
from evaluators.tool_use.mcp_arguments import ArgumentProblemKind, argument_problems
from evaluators.tool_use.mcp_calls import arguments_of
from evaluators.tool_use.mcp_record import McpSurface
from evaluators.tool_use.shell import without_ansi

_OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")
_ENTRY = re.compile(r"^\s{1,12}(-{1,2}[A-Za-z][^\n]*)$", re.MULTILINE)
_HEAD = re.compile(r"^(.*?)(?:\s{2,}|\t|$)")
# A word's first dash alone is tried, and a second opening bracket ends the value: the time would be quadratic.
_VALUE = re.compile(r"(?<![\w-])\w*+-[\w-]++\[?[= ]\[?(?:<[^>][^<>]*+[<>]|[A-Z]|\{[^}][^{}]*+[{}])")
# `\s*` would run over newlines: on empty lines, the time would be quadratic.
_USAGE = re.compile(r"^[^\S\n]*usage:[ \t]*(.*(?:\n[ \t]+\S.*)*)", re.IGNORECASE | re.MULTILINE)
_SECTION = re.compile(r"[ \t]*([A-Za-z][\w ,/()-]*):[ \t]*")
_COMMAND = re.compile(r"^\s{2,12}([a-z][\w-]*)(?:,\s*[a-z][\w-]*)*(?:\s{2,}|\t|\*|$)")
_DESCRIBED = re.compile(r"^ {2,12}([a-z][\w-]*) {2,}[A-Z]\w", re.MULTILINE)
_CHOICES = re.compile(r"\{([a-z][\w-]*(?:,[a-z][\w-]*)+)\}")
_PLACEHOLDERS = frozenset(("options", "option", "command", "subcommand", "commands", "args", "flags", "help"))


class HelpPage(Struct, frozen=True, omit_defaults=True):
    """What a tool, or one of its subcommands, accepts according to its help."""

    options: tuple[tuple[str, ...], ...] = ()
    """Each option with all its names, such as `-f` and `--format`."""
    with_value: tuple[str, ...] = ()
    """Names of the options that take a value."""
    subcommands: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    """Arguments that the usage line names outside of brackets; required options begin with a dash."""

    @property
    def names(self) -> list[str]:
        """Return every name of every option."""
        return [name for option in self.options for name in option]

    def aliases(self, name: str) -> tuple[str, ...]:
        """Return all names of an option."""
        return next((each for each in self.options if name in each), (name,))


def parse_help(text: str) -> HelpPage:
    """Return what a help text names; empty for a text that isn't help."""
    text = without_ansi(text[:LONGEST_TEXT])
    usage = " ".join(match[1] for match in _USAGE.finditer(text))
    heads = [_head(match[1]) for match in _ENTRY.finditer(text)]
    groups = list(filter(None, (tuple(_OPTION.findall(head)) for head in heads)))
    listed = {name for group in groups for name in group}
    groups += [(name,) for name in dict.fromkeys(_OPTION.findall(usage)) if name not in listed]
    if not groups and not usage:
        return HelpPage()
    valued = [_OPTION.findall(head) for head in heads if _VALUE.search(head)]
    return HelpPage(
        tuple(dict.fromkeys(groups)),
        tuple(dict.fromkeys(name for names in valued for name in names)),
        _subcommands(text),
        _required_arguments(usage),
    )


def _head(entry: str) -> str:
    """Return the names of an entry, without its description."""
    match = _HEAD.match(entry)
    return match[1] if match else entry


def _subcommands(text: str) -> tuple[str, ...]:
    names = [name for match in _CHOICES.finditer(text) for name in match[1].split(",")]
    names += _listed_commands(text)
    if not names:
        # Git lists its commands under sentences.
        entries = _DESCRIBED.findall(text)
        # Described words without a section that count as a list of commands.
        names = entries if len(entries) >= 3 else []
    return tuple(dict.fromkeys(name for name in names if name != "help"))


def _listed_commands(text: str) -> Iterator[str]:
    """Yield the entries of the sections whose titles name commands, in one pass over the lines."""
    inside = False
    for line in text.split("\n"):
        if line.strip() and not line.startswith((" ", "\t")):
            inside = False
        if inside and (match := _COMMAND.match(line)):
            yield match[1]
        if (section := _SECTION.fullmatch(line)) and "command" in section[1].lower():
            inside = True


def _required_arguments(usage: str) -> tuple[str, ...]:
    """Return the arguments of a usage line that are not within brackets; none of one with alternatives."""
    if "|" in usage:
        return ()
    depth, outside = 0, []
    for char in usage:
        depth += (char in "[({") - (char in "])}")
        if depth <= 0 and char not in "])}":
            outside.append(char)
    words = "".join(outside).split()
    arguments = []
    for at, word in enumerate(words):
        if word.startswith("--"):
            arguments.append(word.partition("=")[0])
        elif at and re.fullmatch(r"<[^>]+>|[A-Z][A-Z_]+", word) and not words[at - 1].startswith("-"):
            arguments.append(word.strip("<>"))
    return tuple(name for name in dict.fromkeys(arguments) if name.lower().strip("-") not in _PLACEHOLDERS)


Key = tuple[str, str, str, str]
"""Subcommand, kind, what was typed and what was meant."""
NEAR = 65.0
"""Lowest similarity of a near miss, 0 to 100: the normalised edit distance of insertions and deletions (rapidfuzz
`fuzz.ratio`). `--fmt` and `--format` have 67, `--json` and `--format` 20. Options whose words all occur in the flag are near too."""
TOOL = ""
"""The key of the tool's own help page."""


class ConfusionKind(StrEnum):
    """How a typed flag or argument differs from the existing ones."""

    UNKNOWN_COMMAND = "unknown_command"
    """The tool has no such subcommand."""
    INVENTED = "invented"
    NEAR_MISS = "near_miss"
    WRONG_PLACE = "wrong_place"
    """It exists, but on the other side of the subcommand."""
    MISSING = "missing"
    """A required argument or option is not there."""
    WRONG_VALUE = "wrong_value"
    """An argument of an MCP server's tool has a value that its schema doesn't allow."""

    @property
    def label(self) -> str:
        return {
            "unknown_command": "Unknown command",
            "invented": "Invented flag",
            "near_miss": "Near miss",
            "wrong_place": "Wrong order",
            "missing": "Missing",
            "wrong_value": "Wrong value",
        }[self.value]


class Confusion(Struct, frozen=True, order=True):
    """A confusion of one subcommand, with how often it was typed."""

    subcommand: str
    kind: str
    typed: str
    """Empty for a missing argument."""
    meant: str
    """The likely meant option, or what is missing; empty if nothing is near."""
    calls: int = 1


def confused_subcommands(commands: Iterable[Command]) -> list[str]:
    """Return the subcommands of failed calls, whose help pages `find_confusions` needs."""
    return sorted({each.subcommand for each in commands if each.failed and each.subcommand and not each.help})


def find_confusions(commands: Sequence[Command], pages: Mapping[str, HelpPage]) -> list[Confusion]:
    """Return what failed calls confused, by the help pages of the tool (`TOOL`) and its subcommands."""
    return _count_confusions(commands, lambda line, subcommand: _confusions(line, subcommand, pages))


def argument_confusions(
    commands: Sequence[Command], surface: McpSurface, server: str = ""
) -> list[Confusion]:
    """Return what failed calls of an MCP server confused, by the schemas of its tools; argument keys are the flags."""
    return _count_confusions(
        commands, lambda line, subcommand: _of_arguments(arguments_of(line), subcommand, surface, server)
    )


def _count_confusions(
    commands: Sequence[Command], read: Callable[[str, str], Iterable[Key]]
) -> list[Confusion]:
    counted: Counter[Key] = Counter()
    for command in commands:
        if command.failed and command.subcommand and not command.help:
            counted.update(set(read(command.line, command.subcommand)))
    return sorted(Confusion(*key, calls) for key, calls in counted.items())


def _of_arguments(
    arguments: Mapping[str, Json], subcommand: str, surface: McpSurface, server: str
) -> Iterable[Key]:
    schema = surface.schema(subcommand)
    # In runs with several servers it is `server/tool`.
    tool = subcommand if schema is not None else subcommand.removeprefix(f"{server}/")
    schema = surface.schema(tool)
    if schema is None:
        meant = _nearest(tool, [each.name for each in surface.tools])
        yield subcommand, ConfusionKind.UNKNOWN_COMMAND.value, tool[:LONGEST_NAME], meant
        return
    known = list(schema.get("properties") or ())
    problems = argument_problems(schema, dict(arguments))
    # A schema need not forbid other keys.
    unknown = dict.fromkeys(key for key in arguments if key not in known)
    unknown |= dict.fromkeys(
        problem.name for problem in problems if problem.kind == ArgumentProblemKind.UNKNOWN
    )
    for name in unknown:
        meant = _nearest(name, known)
        kind = ConfusionKind.NEAR_MISS if meant else ConfusionKind.INVENTED
        yield subcommand, kind.value, name[:LONGEST_NAME], meant
    for problem in problems:
        if problem.kind == ArgumentProblemKind.MISSING:
            yield subcommand, ConfusionKind.MISSING.value, "", problem.name[:LONGEST_NAME]
        elif problem.kind == ArgumentProblemKind.VALUE:
            yield (
                subcommand,
                ConfusionKind.WRONG_VALUE.value,
                problem.name[:LONGEST_NAME],
                problem.expected[:LONGEST_NAME],
            )


def _confusions(line: str, subcommand: str, pages: Mapping[str, HelpPage]) -> Iterable[Key]:
    try:
        words = shlex.split(line)
    except ValueError:
        return
    if subcommand not in words:
        return
    at = words.index(subcommand)
    page, tool = pages.get(subcommand, HelpPage()), pages.get(TOOL, HelpPage())
    if not page.options:
        if tool.subcommands and subcommand not in tool.subcommands:
            meant = _nearest(subcommand, tool.subcommands)
            yield subcommand, ConfusionKind.UNKNOWN_COMMAND.value, subcommand[:LONGEST_NAME], meant
        return
    for place, flag in _flags(words):
        typed = flag[:LONGEST_NAME]
        here, other = (page, tool) if place > at else (tool, page)
        if flag in here.names or (place < at and not tool.options):
            continue
        if flag in other.names:
            yield subcommand, ConfusionKind.WRONG_PLACE.value, typed, typed
        else:
            meant = _nearest(flag, page.names)
            kind = ConfusionKind.NEAR_MISS if meant else ConfusionKind.INVENTED
            yield subcommand, kind.value, typed, meant
    for name in _missing(words[at + 1 :], page):
        yield subcommand, ConfusionKind.MISSING.value, "", name


def _flags(words: Sequence[str]) -> Iterable[tuple[int, str]]:
    """Yield each typed option with its place, up to `--`; clustered short options are left out."""
    for place, word in enumerate(words[1:], 1):
        if word == "--":
            return
        name = word.partition("=")[0]
        if (name.startswith("--") and len(name) > 2) or (
            len(name) == 2 and name[0] == "-" and name[1].isalpha()
        ):
            yield place, name


def _nearest(flag: str, options: Sequence[str]) -> str:
    """Return the option that a flag is a near miss of; empty if none is near."""
    # Pages that show stored confusions don't need it.
    from rapidfuzz import fuzz, process

    same = [each for each in options if each.startswith("--") == flag.startswith("--")]
    best = process.extractOne(flag.lstrip("-"), {name: name.lstrip("-") for name in same}, scorer=fuzz.ratio)
    if best is not None and best[1] >= NEAR:
        return str(best[2])
    # `--output-format` has every word of `--format`.
    words = {*flag.strip("-").split("-")}
    return next((name for name in same if name.startswith("--") and {*name[2:].split("-")} <= words), "")


def _missing(arguments: Sequence[str], page: HelpPage) -> list[str]:
    """Return the required arguments that a call lacks."""
    names = {word.partition("=")[0] for word in arguments}
    options = [name for name in page.required if name.startswith("-")]
    lacking = [name for name in options if names.isdisjoint(page.aliases(name))]
    count, skip = 0, False
    for word in arguments:
        if skip or word.startswith("-"):
            skip = not skip and word in page.with_value
            continue
        count += 1
    positional = [name for name in page.required if not name.startswith("-")]
    return lacking + positional[count:]

"""Read the options, subcommands and required arguments from what a tool prints for `--help`.

The layouts are those of argparse, click, clap, cobra, docopt and GNU programs: a usage line, sections with indented entries,
and names separated from their descriptions by two blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from evalhub.lib.limits import LONGEST_TEXT
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

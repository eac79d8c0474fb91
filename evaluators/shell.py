"""Find the commands of a shell line and the exit code of each.

Follows llm-tool-test evaluation, Layer 1 (Command Identification): opens wrappers such as `bash -lc '…'`, removes
prompt signs and colours, and cuts the program's path to its name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec
from msgspec import Struct

from evaluators.shell_words import Simple, Word, simple_commands

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_PROMPT = re.compile(r"^[ \t]*(?:\([\w.-]+\)[ \t]*)?(?:[\w.-]++@[\w.-][^\n$%#>]*+[$%#>]|[$%>❯➜])[ \t]+")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*\+?=")
_KEYWORDS = frozenset(["!", "{", "}", "if", "then", "elif", "else", "while", "until", "do", "time"])
_SHELLS = frozenset(["sh", "bash", "zsh", "dash", "ksh", "ash"])
_OPTIONS_WITH_VALUE = {
    "env": frozenset(("-u", "--unset", "-C", "--chdir")),
    "sudo": frozenset(["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "--user", "--group"]),
    "timeout": frozenset(("-s", "--signal", "-k", "--kill-after")),
    "nohup": frozenset[str](),
    "exec": frozenset(("-a",)),
    "command": frozenset[str](),
}
_DEEPEST = 5
"""The deepest nesting of shells that is opened."""


class Segment(Struct, frozen=True):
    """One simple command without its wrappers."""

    words: tuple[str, ...]
    text: str
    """The normalized text for patterns, with empty substitutions."""
    line: str
    """The normalized line: single spaces, canonical quotes, the program without its path."""
    joiner: str = ""
    """The operator before the next command: `&&`, `||`, `|`, `;`, `&`, a newline or nothing."""
    path: str = ""
    """The program as written, if it has a path."""
    detached: bool = False
    """Whether it runs in a substitution, so the line's exit code is not its own."""


def without_ansi(text: str) -> str:
    """Return the text without terminal control sequences."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def segments(line: str) -> tuple[Segment, ...]:
    """Return the commands of a shell line in order. Never raises; prose becomes one segment."""
    return tuple(_script_segments(_PROMPT.sub("", without_ansi(line)), "", depth=0))


def exit_codes(parts: Sequence[Segment], targets: Collection[int], code: int | None) -> dict[int, int | None]:
    """Return the exit code of each target segment, derived from the line's exit code; None is unknown.

    `targets` are indexes into `parts`. Only the last statement decides the line's code; within it, a segment
    before `|` or in a chain with `||` stays unknown.
    """
    if len(parts) == 1 and not parts[0].joiner and not parts[0].detached:
        return dict.fromkeys(targets, code)
    known: dict[int, int | None] = dict.fromkeys(sorted(targets))
    chain = _last_chain(parts)
    decisive = [index for index in chain if index in known]
    if code == 0:
        known.update(dict.fromkeys(decisive, 0))
    elif code is not None and decisive:
        known[decisive[-1]] = code
    return known


def _last_chain(parts: Sequence[Segment]) -> list[int]:
    """Return the segments joined by `&&` to the end of the line, without those before a pipe."""
    own = [index for index, part in enumerate(parts) if not part.detached]
    if not own or parts[own[-1]].joiner == "&":
        return []
    start = next((at + 1 for at in range(len(own) - 2, -1, -1) if parts[own[at]].joiner in _ENDS), 0)
    chain = own[start:]
    if any(parts[index].joiner == "||" for index in chain[:-1]):
        return []
    return [index for index in chain if parts[index].joiner != "|"]


_ENDS = frozenset((";", ";;", "&", "\n"))


def _script_segments(script: str, joiner: str, *, depth: int) -> list[Segment]:
    """Return the segments of a script; `joiner` follows the last one."""
    commands = simple_commands(script)
    found: list[Segment] = []
    for n, command in enumerate(commands):
        last = n == len(commands) - 1
        after = joiner if last and command.joiner in ("", ";", "\n") and joiner else command.joiner
        found += _command_segments(command, after, depth=depth)
    return found


def _command_segments(command: Simple, joiner: str, *, depth: int) -> list[Segment]:
    words = _unwrapped(command.words)
    if depth < _DEEPEST and (script := _script_of_shell(words)) is not None:
        return _script_segments(script, joiner, depth=depth + 1)
    inner = _substitution_segments(command, bare=not words, joiner=joiner, depth=depth)
    if words:
        inner.append(_segment(words, joiner, command.document))
    return inner


def _substitution_segments(command: Simple, *, bare: bool, joiner: str, depth: int) -> list[Segment]:
    """Return the segments of the command's substitutions; `x=$(cmd)` alone has the exit code of `cmd`."""
    scripts = [script for word in command.words for script in word.scripts]
    if depth >= _DEEPEST or not scripts:
        return []
    if bare and len(scripts) == 1:
        return _script_segments(scripts[0], joiner, depth=depth + 1)
    found = [part for script in scripts for part in _script_segments(script, "", depth=depth + 1)]
    return [msgspec.structs.replace(part, detached=True) for part in found]


def _segment(words: Sequence[Word], joiner: str, document: str) -> Segment:
    program = words[0].value.rsplit("/", 1)[-1] or words[0].value
    first = words[0].quoted(program)
    text = " ".join([first, *(word.quoted(word.masked) for word in words[1:])])
    line = " ".join([first, *(word.quoted(word.value) for word in words[1:])])
    values = (program, *(word.value for word in words[1:]))
    path = words[0].value if words[0].value != program else ""
    return Segment(values, text, f"{line} {document}" if document else line, joiner, path)


def _unwrapped(words: Sequence[Word]) -> Sequence[Word]:
    """Remove keywords, assignments and wrappers before the program."""
    # An index, because a slice for each of many wrappers takes quadratic time.
    at = 0
    while at < len(words):
        first = words[at].value
        program = first.rsplit("/", 1)[-1]
        if first in _KEYWORDS or _ASSIGNMENT.match(first):
            at += 1
        elif program in _OPTIONS_WITH_VALUE and at + 1 < len(words):
            at = _after_options(words, at + 1, program)
        else:
            break
    return words[at:]


def _after_options(words: Sequence[Word], at: int, program: str) -> int:
    """Return where the options of a wrapper end, and for `timeout` its duration; maybe beyond the last word."""
    with_value = _OPTIONS_WITH_VALUE[program]
    while at < len(words) and words[at].value.startswith("-"):
        at += 2 if words[at].value in with_value else 1
    return at + 1 if program == "timeout" else at


def _script_of_shell(words: Sequence[Word]) -> str | None:
    """Return the script of `sh -c '…'`, with any options before `-c`."""
    if not words or words[0].value.rsplit("/", 1)[-1] not in _SHELLS:
        return None
    for n, word in enumerate(words[1:], start=1):
        if not word.value.startswith(("-", "+")):
            return None
        if not word.value.startswith("--") and "c" in word.value:
            return words[n + 1].value if n + 1 < len(words) else None
    return None

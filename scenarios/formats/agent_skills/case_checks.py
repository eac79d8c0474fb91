"""Read what a skill's case can be checked by without a judge: texts and patterns of its answer, files, commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from evaluators.grading.gates import Gate
from evaluators.grading.gates.command_gates import CommandRan
from evaluators.grading.gates.file_gates import FileContains, FileExists, FileMatches
from evaluators.grading.gates.transcript_gate import AnswerLacks, TranscriptMatches
from evaluators.model import Json
from evaluators.patterns import PatternError, compile_pattern
from evaluators.tool_use.shell import split_commands
from scenarios.formats.agent_skills.skill_folders import COMMON
from scenarios.formats.parsed import Location, PositionedDocument, Problem, describe_kind

_CONTAINS = frozenset(("contains", "content_contains", "output_contains", "answer_contains", "must_contain"))
_LACKS = frozenset(
    ("not_contains", "does_not_contain", "content_not_contains", "output_not_contains", "must_not_contain")
)
_MATCHES = frozenset(("regex", "matches"))
_EXISTS = frozenset(("file_exists",))
OF_ANSWER = ("must_contain", "must_not_contain")
"""Keys of a case with texts that its answer has, or doesn't have."""
OF_COMMANDS = ("expected_calls", "expected_commands")
"""Keys of a case with the commands that the agent runs."""
OWN_TOOLS = frozenset(("tool_use", "tool_used", "tool_called", "tool_call"))
"""Types of checks that name a tool of one agent's own."""
READ = frozenset(("type", "kind", "value", "pattern", "path", "file"))
"""Keys of a check that gates read."""
_VALUES = ("value", "pattern")
_PLACEHOLDER = re.compile(r"=?(?:<[^<>]*>|\{+[^{}]*\}+|\[[^\[\]]*\]|\.\.\.|…)")
"""What stands for any value in a command."""
_PROGRAM = re.compile(r"(?:[./~]*/)?[a-z0-9][\w.+-]*")


def is_check(item: Json) -> bool:
    """Return whether an object of a list of statements is checked without a judge: by its type and a value or path."""
    if not isinstance(item, dict):
        return False
    type_ = type_of(item)
    has_value = any(item.get(name) not in (None, "", []) for name in _VALUES)
    return (type_ in _CONTAINS | _LACKS | _MATCHES and has_value) or (
        type_ in _EXISTS and (has_value or bool(_path(item)))
    )


def type_of(item: Mapping[str, Json]) -> str:
    """Return a check's type as this module writes it; empty without one."""
    type_ = item.get("type", item.get("kind"))
    return type_.strip().lower().replace("-", "_") if isinstance(type_, str) else ""


def read_check(
    item: Mapping[str, Json],
    name: str,
    document: PositionedDocument,
    at: Location,
    problems: list[Problem],
    *,
    where: str = "answer",
) -> Iterator[Gate]:
    """Yield the gates of a check for which `is_check` holds, one for each of its values. `where` a pattern is searched."""
    type_, path = type_of(item), _path(item)
    key = next((key for key in _VALUES if item.get(key) not in (None, "", [])), "path")
    value = item.get(key, path)
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, bool | dict | list) or one is None:
            what = f"A check's '{key}' must be text, not {describe_kind(one)}."
            fix = f'Write "{key}" as text, or as a list of texts.'
            problems.append(document.problem((*at, key), what, fix=fix, id="format/wrong-type"))
            continue
        try:
            yield _gate(type_, str(one), path, name or None, where)
        except PatternError as error:
            problems.append(
                document.problem((*at, key), str(error), fix="Fix the pattern.", id="format/bad-regex")
            )


def _path(item: Mapping[str, Json]) -> str:
    path = item.get("path", item.get("file"))
    return path.strip() if isinstance(path, str) else ""


def _gate(type_: str, value: str, path: str, name: str | None, where: str) -> Gate:
    """Return the gate of one value. Raises `PatternError`."""
    if type_ in _EXISTS:
        return FileExists(path=path or value, name=name)
    if type_ in _CONTAINS:
        if path:
            return FileContains(path=path, substring=value, name=name)
        return TranscriptMatches(pattern=re.escape(value), where="answer", name=name or f"contains '{value}'")
    if type_ in _LACKS:
        if path:
            return FileMatches(path=path, pattern=rf"(?s)\A(?!.*{re.escape(value)})", name=name)
        return AnswerLacks(substring=value, name=name)
    compile_pattern(value)
    if path:
        return FileMatches(path=path, pattern=value, name=name)
    return TranscriptMatches(pattern=value, where=where, name=name)


def read_answer_checks(
    case: Mapping[str, Json], document: PositionedDocument, at: Location, problems: list[Problem]
) -> Iterator[Gate]:
    """Yield the gates of the texts that the answer must have, or must not have."""
    for key in OF_ANSWER:
        value = case.get(key)
        for one in value if isinstance(value, list) else [value]:
            if one not in (None, ""):
                check = {"type": key, **(one if isinstance(one, dict) else {"value": one})}
                if isinstance(one, dict) and not is_check(check):
                    problems.append(_unread(document, (*at, key), key))
                else:
                    yield from read_check(check, "", document, (*at, key), problems)


def read_commands(
    case: Mapping[str, Json], document: PositionedDocument, at: Location, problems: list[Problem]
) -> Iterator[Gate | str]:
    """Yield a gate for each command that the agent must run; what is a sentence about one, as it is."""
    for key in OF_COMMANDS:
        value = case.get(key)
        value = value.get("value", value) if isinstance(value, dict) else value
        for one in value if isinstance(value, list) else [value]:
            item = one if isinstance(one, dict) else {"command": one}
            line = next((item[name] for name in ("command", "cmd") if isinstance(item.get(name), str)), "")
            if one in (None, ""):
                continue
            required, forbidden = _flags(item, "required_flags", "flags"), _flags(item, "forbidden_flags")
            gates = list(_commands(line, required, forbidden or []))
            if gates:
                yield from gates
            elif line.strip():
                yield line.strip()
            else:
                problems.append(_unread(document, (*at, key), key))


def _unread(document: PositionedDocument, at: Location, key: str) -> Problem:
    fix = "Write what the agent must run or answer as text."
    what = f"Nothing reads this value of '{key}'."
    return document.problem(at, what, fix=fix, id="format/unread-check", lint=True)


def _flags(item: Mapping[str, Json], *names: str) -> list[str] | None:
    """Return the flags that a call names; None if it has no such key."""
    for name in names:
        value = item.get(name)
        if value is not None:
            listed = value if isinstance(value, list) else [value]
            return [flag for each in listed if (flag := _PLACEHOLDER.sub("", str(each)).strip())]
    return None


def _commands(line: str, required: Sequence[str] | None, forbidden: Sequence[str]) -> Iterator[CommandRan]:
    """Yield a gate for each command of a line; none if it is a sentence."""
    if re.match(r"\s*[A-Z][a-z]+\s", line) is not None or re.search(r"[a-z]{2}\.\s*$", line) is not None:
        return
    parts = [
        [word for word in part.words if word]
        for part in split_commands(_PLACEHOLDER.sub("", line))
        if part.words
    ]
    commands = [words for words in parts if words and _PROGRAM.fullmatch(words[0])]
    # What only prepares or shows a tool's command isn't what the case is about.
    for command in [words for words in commands if words[0] not in COMMON] or commands:
        words, flags = _split(command)
        asked = flags if required is None else required
        yield CommandRan(words=words, flags=list(asked), without_flags=list(forbidden))


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command's words and its flags; the word after a flag is its value, unless it may be the subcommand."""
    own = list(takewhile(lambda word: not _is_flag(word), words))
    flags: list[str] = []
    rest = list(words[len(own) :])
    while rest:
        word = rest.pop(0)
        if not _is_flag(word):
            own.append(word)
        elif rest and not _is_flag(rest[0]) and "=" not in word and len(own) > 1:
            flags.append(f"{word} {shlex.quote(rest.pop(0))}")
        else:
            flags.append(word)
    return own, flags


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1

"""Keep the files that judge a trial from its agent: they are written when the agent has ended.

Of a bundle's files these are the ones that judging names: eval files, judges' scripts with their folders, the files
that those scripts name, prompts and files of expected messages. All else stays, because the target's program may be
among it. Of a fixture's files it is the rubric.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalhub.lib.limits import LARGEST_FILE
from evaluators.grading.judges.rubric import RubricCriteria
from evaluators.model import Json
from scenarios.formats.parsed import FixtureFile, ScenarioFileError
from scenarios.formats.upload import is_below
from scenarios.formats.yaml_text import read_yaml

_PATH = re.compile(rb"[\w.+-]+(?:/[\w.+-]+)*")
_IMPORTS = re.compile(rb"^[^\S\n]*(?:from|import)[^\S\n]+([\w., \t]+)", re.MULTILINE)
"""Modules of Python, several in one line."""
_REQUIRED = re.compile(rb"""(?:require\(|from|import)\s*['"]([^'"\n]+)['"]""")
_CODE = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl")


@dataclass(frozen=True)
class Command:
    """A command line and the folder of the bundle that it starts in."""

    line: str
    folder: str = ""


@dataclass(frozen=True)
class JudgingFiles:
    """What the scenarios of an upload name to judge with."""

    files: frozenset[str] = frozenset()
    """Eval files, prompts and files of expected messages, as paths in the bundle."""
    scripts: frozenset[Command] = frozenset()
    rubrics: tuple[RubricCriteria, ...] = ()


def named_by_judging(contents: Iterable[Json]) -> tuple[frozenset[str], frozenset[Command]]:
    """Return the files and the scripts that stored evaluators and expected messages name."""
    values = [part for content in contents for part in _mappings(content)]
    files = {value.get("prompt_file") for value in values}
    files |= {value.get("path") for value in values if value.get("type") == "file"}
    scripts = [
        (value.get("script") or (value.get("path") if value.get("type") == "code_judge" else None), value)
        for value in values
    ]
    return (
        frozenset(path for path in files if isinstance(path, str) and path),
        frozenset(
            Command(line, str(value.get("cwd") or "")) for line, value in scripts if isinstance(line, str)
        ),
    )


def commands_of_target(definition: Json, folder: str) -> tuple[Command, ...]:
    """Return everything that a target's definition may name in a bundle, from a folder and its own `cwd`."""
    texts = [text for value in _mappings(definition) for text in _texts(value)]
    cwd = definition.get("cwd") if isinstance(definition, dict) else None
    working_folder = posixpath.join(folder, cwd) if isinstance(cwd, str) else folder
    return tuple(Command(text, base) for text in texts for base in dict.fromkeys((folder, working_folder)))


def _texts(value: Mapping[str, Json]) -> Iterator[str]:
    for part in value.values():
        yield from (each for each in (part if isinstance(part, list) else [part]) if isinstance(each, str))


def judging_files(
    files: Sequence[FixtureFile],
    judging: JudgingFiles,
    *,
    folder: str,
    attachments: Iterable[str],
    target: Sequence[Command],
) -> frozenset[str]:
    """Return the paths of a bundle's files that the agent must not see.

    `folder` is the scenario file's; `attachments` includes guidelines. What the target's commands name stays,
    and so does what the files that they name name in turn, unless judging names it itself.
    """
    contents = {file.path: file.content for file in files}
    scripts, folders = _find_named(judging.scripts, contents)
    named = (judging.files & contents.keys()) | scripts
    target_files, target_folders = _find_named(target, contents)
    used = _read_along(target_files, contents)
    shared = {posixpath.dirname(path) for path in target_files} | target_folders
    programs = {file.path for file in files if file.executable or file.path.endswith(_CODE)}
    candidates = {
        *folders,
        *map(posixpath.dirname, scripts & programs),
        *(each.folder for each in judging.scripts),
    }
    closed = {
        candidate
        for candidate in candidates
        if not is_below(candidate, folder) and not any(is_below(candidate, one) for one in shared)
    }
    beside = {path for path in contents if any(is_below(each, path) for each in closed)}
    read = _read_along(named | beside, contents)
    rubrics = rubric_files(files, judging.rubrics)
    return frozenset((named - target_files) | ((beside | read | rubrics) - used)) - frozenset(attachments)


def may_be_rubric(file: FixtureFile) -> bool:
    """Return whether it is worth to decode a file to know whether it is a rubric."""
    name = file.path.lower()
    return (
        name.endswith((".yaml", ".yml", ".json"))
        and len(file.content) <= LARGEST_FILE
        and b"criteria" in file.content
    )


def rubric_files(files: Iterable[FixtureFile], rubrics: Iterable[RubricCriteria]) -> frozenset[str]:
    """Return the paths of the files that state the criteria of one of the rubrics."""
    asked = {tuple(one.id for one in rubric.criteria) for rubric in rubrics}
    return frozenset(file.path for file in files if may_be_rubric(file) and _criteria_of(file) in asked)


def _criteria_of(file: FixtureFile) -> tuple[Json, ...] | None:
    """Return the ids of a rubric file's criteria; None for another file."""
    try:
        value = read_yaml(file.content, file.path).value
    except ScenarioFileError:
        return None
    entries = value.get("criteria") if isinstance(value, dict) else None
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        return None
    ids = [each.get("id") for each in entries]
    return tuple(ids) if all(isinstance(each, str) for each in ids) else None


def _mappings(value: Json) -> Iterator[Mapping[str, Json]]:
    """Yield every mapping within a value."""
    if isinstance(value, dict):
        yield value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for part in parts:
        yield from _mappings(part)


def _find_named(commands: Iterable[Command], contents: Mapping[str, bytes]) -> tuple[set[str], set[str]]:
    """Return the files and the folders of the bundle that commands name."""
    folders = {folder for path in contents for folder in _folders_of(path)}
    paths = {
        posixpath.normpath(posixpath.join(command.folder, word))
        for command in commands
        for word in _words(command.line)
    }
    return paths & contents.keys(), paths & folders


def _folders_of(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def _words(line: str) -> Iterator[str]:
    """Yield a command's words, and what follows an equals sign in one."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        words = line.split()
    for word in words:
        yield word
        yield from word.split("=")[1:]
        # A line within a line, as in sh -c '…'.
        if " " in word:
            yield from _words(word)


def _read_along(paths: Iterable[str], contents: Mapping[str, bytes]) -> set[str]:
    """Return the files, and all that they name or import, with what these name in turn."""
    names: dict[str, list[str]] = {}
    for path in contents:
        names.setdefault(posixpath.basename(path), []).append(path)
    files, left = set(paths), list(paths)
    while left:
        path = left.pop()
        if not path.endswith(_CODE):
            continue
        for token in _tokens(contents[path]):
            # The files that a path in a script's text may mean: the one beside the script, else all of
            # that name.
            same = [
                each for each in names.get(posixpath.basename(token), ()) if f"/{each}".endswith(f"/{token}")
            ]
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), token))
            for other in [beside] if beside in same else same:
                if other not in files:
                    files.add(other)
                    left.append(other)
    return files


def _tokens(content: bytes) -> set[str]:
    """Return what may be a path in a script's text."""
    content = content[:LARGEST_FILE]
    tokens = set(_PATH.findall(content))
    modules = {word for line in _IMPORTS.findall(content) for word in re.findall(rb"[\w.]+", line)}
    stems = {module.lstrip(b".").replace(b".", b"/") for module in modules} | {*_REQUIRED.findall(content)}
    tokens |= {stem + ending.encode() for stem in stems for ending in _CODE}
    texts = {posixpath.normpath(each.decode("utf-8", "replace")).removeprefix("../") for each in tokens}
    # Words without a dot or a slash are in every text.
    return {each for each in texts if "." in each or "/" in each}

"""Decide what of a skill's folder no agent gets: evals, what judged them, and what a repository has for its authors.

All else is the skill, in whichever folder it lies.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Set

from evalhub.lib.numbers import counted
from evaluators.model import Json
from scenarios.formats.agent_skills.case_lists import are_triggers, find_cases, holds_cases
from scenarios.formats.problems import ScenarioFileError
from scenarios.formats.text_decoding import MAX_BYTES
from scenarios.formats.yaml_text import read_yaml
from scenarios.globs import matches
from scenarios.guidance import Guidance

FILE = "SKILL.md"
GATES = "gates.yaml"
_FOLDERS = frozenset(("evals", "evaluations", ".git"))
"""Left out at any depth."""
_RESULTS = re.compile(r"(?:eval_metadata|grading|timing|feedback)\.json|benchmark\..+")
"""Files of skill-creator with assertions, evidence and solutions."""
_BESIDE = "eval.json"
"""Left out beside SKILL.md."""
_ITERATION = re.compile(r"iteration-\d+")
_OF_AUTHORS = frozenset((".github", ".planning", "tests"))
"""Left out where the skill is a repository's root."""
_DOCS = "docs"
_PARTS = frozenset(("scripts", "references", "assets"))
"""Folders of a skill in which no eval file is read."""
_MARKS = (b"rigger", b"skill", b"evals", b"evaluations", b"expect")
"""One of them is in every YAML file with cases; others aren't decoded."""


def find_left_out(files: Mapping[str, bytes], *, is_repository: bool = False) -> dict[str, str]:
    """Return the files of a skill's folder that no agent gets, each with the folder, or itself, that is left out.

    Paths are relative to the skill's folder; `is_repository` says that it is a repository's root.
    """
    workspaces = find_workspaces(files)
    authors = _OF_AUTHORS if is_repository else frozenset[str]()
    if is_repository and not any(
        path.encode() in files.get(FILE, b"") for path in files if path.startswith(f"{_DOCS}/")
    ):
        authors |= {_DOCS}
    left_out = {path: unit for path in files if (unit := _unit(path, files, workspaces, authors))}
    rest = {path: content for path, content in files.items() if path not in left_out}
    cases = {path for path, content in rest.items() if _holds_answers(path, content)}
    beside = {path for path in left_out if posixpath.basename(path) == _BESIDE}
    folders = {posixpath.dirname(path) for path in cases | beside}
    gates = {path for path in rest if posixpath.split(path) in {(folder, GATES) for folder in folders}}
    return left_out | {path: path for path in cases | gates}


def find_workspaces(paths: Iterable[str]) -> frozenset[str]:
    """Return skill-creator's workspaces, folders with `iteration-N/`; of a skill's own folder, the iterations."""
    known, found = set(paths), set[str]()
    for path in known:
        parts = path.split("/")[:-1]
        for at, part in enumerate(parts):
            if _ITERATION.fullmatch(part):
                folder = "/".join(parts[:at])
                is_skill = posixpath.join(folder, FILE) in known
                found.add(folder if folder and not is_skill else posixpath.join(folder, part))
                break
    return frozenset(found)


def is_in_evals(path: str, workspaces: Set[str]) -> bool:
    """Return whether a path lies in a folder of evals or a workspace, whose skills are copies."""
    return bool(_unit_of_folders(path, workspaces, frozenset()))


def remove_left_out(documents: Guidance, repositories: Set[str] = frozenset()) -> Guidance:
    """Return guidance without what its skills' folders have for their authors; `repositories` are roots of some."""
    left_out: set[str] = set()
    for file in documents:
        if matches(file.path, f"**/skills/*/{FILE}"):
            folder = posixpath.dirname(file.path)
            below = {
                each.path.removeprefix(f"{folder}/"): each.content
                for each in documents
                if each.path.startswith(f"{folder}/")
            }
            found = find_left_out(below, is_repository=folder in repositories)
            left_out |= {f"{folder}/{path}" for path in found}
    return tuple(file for file in documents if file.path not in left_out)


def name_left_out(left_out: Mapping[str, str]) -> list[str]:
    """Return what is left out, folders with the number of their files."""
    units: dict[str, int] = {}
    for unit in left_out.values():
        units[unit] = units.get(unit, 0) + 1
    return [
        f"{unit} ({counted(count, 'file')})" if unit.endswith("/") else unit
        for unit, count in sorted(units.items())
    ]


def _unit(path: str, files: Mapping[str, bytes], workspaces: Set[str], authors: Set[str]) -> str:
    folder, name = posixpath.split(path)
    if unit := _unit_of_folders(path, workspaces, authors):
        return unit
    is_beside = name == _BESIDE and posixpath.join(folder, FILE) in files
    return path if is_beside or name == ".git" or _RESULTS.fullmatch(name) else ""


def _unit_of_folders(path: str, workspaces: Set[str], authors: Set[str]) -> str:
    """Return the outermost folder of a path that is left out, with a slash; empty if none is."""
    parts = path.split("/")[:-1]
    folders = ["/".join(parts[: at + 1]) for at in range(len(parts))]
    return next(
        (
            f"{folder}/"
            for folder, part in zip(folders, parts, strict=True)
            if part in _FOLDERS or folder in workspaces or folder in authors
        ),
        "",
    )


def _holds_answers(path: str, content: bytes) -> bool:
    """Return whether a file is a list of trigger queries, or an eval file outside the folders for the agent."""
    if len(content) > MAX_BYTES:
        return False
    value = _decode(path, content)
    if value is None:
        return False
    is_read = path.split("/")[0] not in _PARTS and holds_cases(path, value)
    return is_read or are_triggers([case for case, _ in find_cases(value)])


def _decode(path: str, content: bytes) -> Json:
    suffix = posixpath.splitext(path)[1].lower()
    try:
        if suffix == ".json":
            # Without lines of values, which take long.
            value: Json = json.loads(content)
            return value
        if suffix in (".yaml", ".yml") and any(mark in content for mark in _MARKS):
            return read_yaml(content, path).value
    except (ScenarioFileError, ValueError, RecursionError):
        return None
    return None

"""Find the skills of an upload, and which of their files go into a workspace.

No agent gets evals, what judged them, and what a repository has for its authors. All else is the skill, in
whichever folder it lies.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from evalhub.lib.numbers import format_count
from evaluators.model import Json
from evaluators.tool_use.shell import split_commands
from evaluators.transcripts.reading import decode_text
from scenarios.formats.agent_skills.case_lists import are_triggers, find_cases, holds_cases
from scenarios.formats.agentv.file_versions import folders_above
from scenarios.formats.parsed import (
    Fixture,
    FixtureFile,
    PositionedDocument,
    Positions,
    Problem,
    ScenarioFileError,
)
from scenarios.formats.text_files import MAX_BYTES
from scenarios.formats.upload import UploadedFiles
from scenarios.formats.yaml_text import read_yaml
from scenarios.globs import matches
from scenarios.guidance import SKILLS, Guidance

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
        f"{unit} ({format_count(count, 'file')})" if unit.endswith("/") else unit
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


READ_BY_AGENTS = 1024
"""Characters of a description; agents cut off what is longer."""
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(```|~~~)[ \t]*(\w*)[^\n]*\n(.*?)^[ \t]*\1", re.DOTALL | re.MULTILINE)
_TYPED = re.compile(r"^[ \t]*[$%>] ((?:.*\\\n)*.*\n?)", re.MULTILINE)
"""A line after a prompt, with those that continue it."""
_SHELLS = frozenset(("bash", "sh", "shell", "console", "zsh", "terminal"))
COMMON = frozenset(
    [
        "bash",
        "brew",
        "bun",
        "bunx",
        "cargo",
        "cat",
        "cd",
        "chmod",
        "cp",
        "curl",
        "deno",
        "docker",
        "echo",
        "env",
        "export",
        "find",
        "gh",
        "git",
        "go",
        "grep",
        "head",
        "jq",
        "kill",
        "ls",
        "make",
        "mkdir",
        "mv",
        "node",
        "npm",
        "npx",
        "pip",
        "pip3",
        "pipx",
        "pnpm",
        "pytest",
        "python",
        "python3",
        "rm",
        "sed",
        "sh",
        "source",
        "sudo",
        "tail",
        "test",
        "touch",
        "uv",
        "uvx",
        "wget",
        "which",
        "yarn",
    ]
)
"""Programs that a skill's examples run beside its tool."""


@dataclass(frozen=True)
class Skill:
    """One skill: a folder with SKILL.md."""

    name: str
    folder: str
    """In the upload; empty for its root."""
    file: str
    text: str
    files: Fixture = field(default=(), compare=False)
    """What an agent gets, with paths in its folder."""
    left_out: Mapping[str, str] = field(default_factory=dict, compare=False)
    """What no agent gets, as `find_left_out` returns it."""
    lints: tuple[Problem, ...] = field(default=(), compare=False)

    @property
    def tools(self) -> list[tuple[str, int]]:
        """The programs that its shells' code runs, and how often, the most frequent first; common ones left out."""
        words = Counter(word for script in _scripts(self.text) for word in _programs(script))
        return [(word, count) for word, count in words.most_common() if word not in COMMON]


def find_skills(upload: UploadedFiles) -> tuple[Skill, ...]:
    """Return the skills of an upload by path, without copies in folders of evals and, if others are left, in workspaces."""
    paths = [
        path
        for path in sorted(upload.files)
        if posixpath.basename(path) == FILE and not is_in_evals(path, frozenset())
    ]
    workspaces = find_workspaces(upload.files)
    own = [path for path in paths if not is_in_evals(path, workspaces)]
    return tuple(_read(upload, path) for path in own or paths)


def lower_case_problem(upload: UploadedFiles) -> Problem | None:
    """Return the problem of a skill whose file has another case, which agents on most systems don't find; None without one."""
    for path in sorted(upload.files):
        if posixpath.basename(path).lower() == FILE.lower() and posixpath.basename(path) != FILE:
            what = f"The file is called {posixpath.basename(path)}, so no agent finds the skill."
            return Problem(path, 1, "", what, f"Rename it to {FILE}.", "format/no-skill")
    return None


def skills_of(file: str, name: str, skills: Sequence[Skill]) -> tuple[Skill, ...]:
    """Return the skills that an eval file tests; several for a plug-in, none if the upload has none near it.

    `name` is the file's `skill_name`. The skill around the file counts if it has that name, else another skill of that
    name, else the one around it, else all skills of the nearest folder that has some.
    """
    above = list(folders_above(posixpath.dirname(file)))
    around = [skill for folder in above for skill in skills if skill.folder == folder]
    called = [skill for skill in skills if name and name in (skill.name, posixpath.basename(skill.folder))]
    for candidates in ([skill for skill in around if skill in called], called, around):
        if candidates:
            return (
                max(
                    candidates, key=lambda skill: len(posixpath.commonpath(("/" + skill.folder, "/" + file)))
                ),
            )
    for folder in above:
        if within := [skill for skill in skills if not folder or skill.folder.startswith(folder + "/")]:
            return tuple({skill.name: skill for skill in reversed(within)}.values())[::-1]
    return ()


def installed_files(skills: Sequence[Skill]) -> Fixture:
    """Return the files of skills where agents look for them, without what no agent gets."""
    return tuple(
        replace(file, path=f"{SKILLS}/{skill.name}/{file.path}") for skill in skills for file in skill.files
    )


def whole_upload(upload: UploadedFiles) -> Fixture:
    """Return all files of an upload."""
    return tuple(
        FixtureFile(path, content, executable=path in upload.executables)
        for path, content in sorted(upload.files.items())
    )


def _read(upload: UploadedFiles, path: str) -> Skill:
    folder = posixpath.dirname(path)
    text = decode_text(upload.files[path], "replace").replace("\r\n", "\n")
    front = _FRONT.match(text)
    fields, lints = _front_matter(front[1], path) if front else ({}, [_without_front_matter(path)])
    folder_name = posixpath.basename(folder) or upload.name
    document = PositionedDocument(path, None, Positions(_lines(front[1]) if front else {}))
    if front:
        lints += list(_front_lints(fields, folder_name if folder else "", document))
    name = fields.get("name", "")
    valid = _NAME.fullmatch(name) is not None
    files = upload.below(folder) if folder else whole_upload(upload)
    left_out = find_left_out({file.path: file.content for file in files}, is_repository=not folder)
    laid = tuple(file for file in files if file.path not in left_out)
    called = (
        name
        if valid
        else (re.sub(r"[^a-z0-9]+", "-", (name or folder_name).lower()).strip("-")[:64] or "skill")
    )
    return Skill(called, folder, path, text, laid, left_out, tuple(lints))


def _front_matter(text: str, path: str) -> tuple[dict[str, str], list[Problem]]:
    """Return the texts of a front matter; read line by line if it isn't YAML, as some agents do."""
    try:
        # The line before it is the first one, so that problems have their lines in the file.
        value = read_yaml(f"\n{text}".encode(), path).value
    except ScenarioFileError as error:
        plain = dict(line.split(":", 1) for line in text.splitlines() if re.match(r"\w[\w-]*:", line))
        follows = "Agents that read it as YAML don't know the skill."
        lints = [replace(each, what=f"{each.what} {follows}", lint=True) for each in error.problems]
        return {key: value.strip().strip("\"'") for key, value in plain.items()}, lints
    fields = value if isinstance(value, dict) else {}
    return {str(key): each.strip() for key, each in fields.items() if isinstance(each, str)}, []


def _lines(front: str) -> dict[tuple[str | int, ...], int]:
    """Return the line of each key of a front matter."""
    return {
        (match[1],): number
        for number, line in enumerate(front.splitlines(), start=2)
        if (match := re.match(r"(\w[\w-]*):", line))
    }


def _front_lints(fields: dict[str, str], folder: str, document: PositionedDocument) -> Iterator[Problem]:
    name, description = fields.get("name", ""), fields.get("description", "")
    if not name or len(name) > 64 or not _NAME.fullmatch(name):
        what = f"The skill's name is '{name}'." if name else "The skill has no name."
        fix = "Write 'name:' with lower-case letters, digits and hyphens, at most 64 characters."
        yield document.problem(("name",), what, fix=fix, id="format/skill-name", lint=True)
    elif folder and folder != name:
        what = f"The skill is called '{name}', and its folder '{folder}'."
        fix = "Give both the same name; agents look for the folder."
        yield document.problem(("name",), what, fix=fix, id="format/skill-name", lint=True)
    if not description:
        what = "The skill has no description, so no agent decides to load it."
        fix = "Write 'description:' with what it does and when to use it."
        yield document.problem(("description",), what, fix=fix, id="format/skill-description", lint=True)
    elif len(description) > READ_BY_AGENTS:
        what = f"The description has {len(description):,} characters; agents read at most {READ_BY_AGENTS:,}."
        yield document.problem(
            ("description",), what, fix="Shorten it.", id="format/skill-description", lint=True
        )


def _without_front_matter(path: str) -> Problem:
    what = "The file has no front matter, so no agent knows the skill."
    fix = "Begin it with '---', 'name:', 'description:' and '---'."
    return Problem(path, 1, "", what, fix, "format/skill-description", lint=True)


def _scripts(text: str) -> Iterator[str]:
    """Yield the code of blocks of a shell; of sessions, what was typed."""
    for match in _FENCE.finditer(text):
        if match[2].lower() in _SHELLS:
            typed = "".join(each[1] for each in _TYPED.finditer(match[3]))
            yield typed or match[3]


def _programs(script: str) -> Iterator[str]:
    """Yield the programs that a script runs; a single word is often no command."""
    for part in split_commands(script):
        name = posixpath.basename(part.words[0]) if len(part.words) > 1 else ""
        if re.fullmatch(r"[a-z][\w.-]*", name):
            yield name

"""Guidance: documents that an agent reads, such as AGENTS.md, recognised by name.

Guidance and the tool under test are separated from a fixture and have versions of their own, so a new one isn't a
new task.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from evaluators.tool_use.tool import Tool
from scenarios.formats.parsed import Fixture, FixtureFile, ParsedSuite
from scenarios.globs import matches

if TYPE_CHECKING:  # a format imports this
    from scenarios.formats.parsed import Fixture


def is_tool_file(path: str, tool: Tool | None) -> bool:
    """Return whether a file of the workspace is the tool: its binary, or matched by one of its `files` patterns."""
    if tool is None:
        return False
    binary = posixpath.normpath(tool.binary) if tool.binary else ""
    # Folders of a tool that is named without a path.
    places = {binary} if "/" in binary else {folder + binary for folder in ("", "bin/") if binary}
    return path in places or any(matches(path, pattern) for pattern in tool.files)


def split_tool(fixture: Fixture, tool: Tool | None) -> tuple[Fixture, Fixture]:
    """Return a fixture without the tool's files, and those files."""
    is_tool = [is_tool_file(file.path, tool) for file in fixture]
    rest = tuple(file for file, own in zip(fixture, is_tool, strict=True) if not own)
    return rest, tuple(file for file, own in zip(fixture, is_tool, strict=True) if own)


def tool_file_problems(patterns: Sequence[str]) -> list[str]:
    """Return what is wrong with `files` patterns, one sentence each."""
    return [
        f"'{pattern}' leads out of the workspace. "
        for pattern in patterns
        if pattern.startswith("/") or ".." in pattern.split("/")
    ]


Guidance = tuple[FixtureFile, ...]
"""A guidance version: a set of (path, content), sorted by path."""

GUIDANCE_PATTERNS = (
    "**/AGENTS.md",
    "**/CLAUDE.md",
    "**/GEMINI.md",
    "**/.cursor/rules",
    "**/.cursor/rules/**",
    "**/.github/copilot-instructions.md",
    "**/skills/*/SKILL.md",
)
"""File names where agents expect guidance; `**` matches any number of folders."""


SKILLS = ".agents/skills"
"""Where a suite's skills lie in the workspace, each in a folder of its name; several agents look there."""
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
"""Names of documents that agents load by themselves, in the order in which a copy prefers them."""


def is_guidance(path: str, extra: Sequence[str] = ()) -> bool:
    """Return whether a path in the workspace is guidance; `extra` are further patterns of the project."""
    return any(matches(path, pattern) for pattern in (*GUIDANCE_PATTERNS, *extra))


def split(fixture: Fixture, extra: Sequence[str] = ()) -> tuple[Fixture, Guidance]:
    """Return a fixture without its guidance files, and those files."""
    rest = tuple(file for file in fixture if not is_guidance(file.path, extra))
    return rest, tuple(file for file in fixture if is_guidance(file.path, extra))


def suite_guidance(suite: ParsedSuite, extra: Sequence[str] = ()) -> Guidance:
    """Return the guidance that a suite was uploaded with.

    A file that is the same in every workspace has its path there. If workspaces differ in it or one lacks it,
    its path starts with the fixture's name.
    """
    by_fixture = {name: _by_path(split(fixture, extra)[1]) for name, fixture in suite.fixtures.items()}
    if not all(scenario.worker_fixture for scenario in suite.scenarios):
        by_fixture[""] = {}
    paths = sorted({path for files in by_fixture.values() for path in files})
    shared = {path for path in paths if _is_shared(path, by_fixture)}
    common = [next(files[path] for files in by_fixture.values()) for path in sorted(shared)]
    specific = [
        FixtureFile(f"{name}/{path}", file.content, file.executable)
        for name, files in by_fixture.items()
        for path, file in files.items()
        if path not in shared
    ]
    return _sort_files([*common, *specific])


def named_guidelines(suite: ParsedSuite) -> tuple[str, ...]:
    """Return what is guidance regardless of its name: patterns of the suite, and files that scenarios list as guidelines."""
    return tuple(
        sorted({*suite.guidance, *(path for scenario in suite.scenarios for path in scenario.guidelines)})
    )


class Unplaced(ValueError):
    """A document that could replace several documents or none; the message doesn't say how to fix it."""


def place_documents(
    documents: Guidance, suite_documents: Guidance, *, named: Collection[str] = ()
) -> Guidance:
    """Return documents, in order, under the paths of the suite's documents that they replace.

    A single document replaces the suite's only document, regardless of its file name. Others are matched by path,
    else by file name. Paths in `named` are used as they are. Raises `Unplaced`.
    """
    paths = tuple(file.path for file in suite_documents)
    placed: dict[str, FixtureFile] = {}
    for file in documents:
        path = file.path if file.path in named else _place(file.path, paths, alone=len(documents) == 1)
        if path in placed:
            raise Unplaced(f"Two of the documents would take the place of {path}.")
        placed[path] = FixtureFile(path, file.content, file.executable)
    return tuple(placed.values())


def replace_documents(suite_documents: Guidance, documents: Guidance) -> Guidance:
    """Return a suite's guidance with the documents of the same paths replaced."""
    return _sort_files({**_by_path(suite_documents), **_by_path(documents)}.values())


def _place(path: str, paths: Sequence[str], *, alone: bool) -> str:
    """Return the path where a document is written."""
    if path in paths:
        return path
    if alone and len(paths) == 1:
        return paths[0]
    same = [each for each in paths if posixpath.basename(each) == posixpath.basename(path)]
    if len(same) == 1:
        return same[0]
    if is_guidance(path) and not same and not (alone and paths):
        return path
    if not paths:
        raise Unplaced(
            f"The suite has no document whose place '{path}' could take, and no agent looks for that name."
        )
    raise Unplaced(f"'{path}' could take the place of several documents: {', '.join(paths)}.")


def lay_guidance_over(
    fixture: Fixture,
    guidance: Guidance,
    *,
    name: str,
    names: Collection[str],
    extra: Sequence[str] = (),
) -> Fixture:
    """Return a fixture with its guidance replaced by a run's.

    Guidance files that the run's guidance does not name are removed. `name` is the fixture's own, empty
    for an empty workspace; `names` are those of all fixtures of the suite, whose prefixes are for them alone.
    """
    rest, _ = split(fixture, extra)
    return _sort_files(
        {**_by_path(rest), **_by_path(guidance_documents(guidance, name=name, names=names))}.values()
    )


def guidance_documents(guidance: Guidance, *, name: str, names: Collection[str]) -> Guidance:
    """Return the documents of a run's guidance for one fixture, as `lay_guidance_over` lays them."""
    common = [file for file in guidance if _owner(file.path, names) is None]
    specific = [
        FixtureFile(file.path.removeprefix(name + "/"), file.content, file.executable)
        for file in guidance
        if name and _owner(file.path, names) == name
    ]
    return _sort_files({**_by_path(common), **_by_path(specific)}.values())


def copies_for(documents: Guidance, taken: Collection[str], name: str) -> Guidance:
    """Return copies of instructions under the name that an agent reads, where no file has it.

    Each folder with an AGENTS.md, CLAUDE.md or GEMINI.md gets one. `taken` are the workspace's paths.
    """
    copies: dict[str, FixtureFile] = {}
    for kind in INSTRUCTIONS:
        for file in documents:
            path = posixpath.join(posixpath.dirname(file.path), name)
            if posixpath.basename(file.path) == kind and path not in taken:
                copies.setdefault(path, FixtureFile(path, file.content, file.executable))
    return _sort_files(copies.values())


def is_skill_file(path: str) -> bool:
    """Return whether a path in the workspace lies in a suite's skill."""
    return path.startswith(SKILLS + "/")


def skill_copies(documents: Guidance, taken: Collection[str], folder: str) -> Guidance:
    """Return copies of skills in the folder where an agent looks for them, where no file is. `taken` are the workspace's paths."""
    moved = (
        FixtureFile(folder + file.path.removeprefix(SKILLS), file.content, file.executable)
        for file in documents
        if is_skill_file(file.path)
    )
    return _sort_files(file for file in moved if file.path not in taken)


def without_skills(documents: Guidance) -> Guidance:
    """Return documents without skills, in whichever folder: a skill's folder has a SKILL.md and lies in `skills`."""
    folders = tuple(
        posixpath.dirname(file.path) + "/" for file in documents if matches(file.path, "**/skills/*/SKILL.md")
    )
    return tuple(file for file in documents if not file.path.startswith(folders))


def skill_files(documents: Guidance) -> Guidance:
    """Return the files of skills among documents."""
    rest = {file.path for file in without_skills(documents)}
    return tuple(file for file in documents if file.path not in rest)


def with_skills(documents: Guidance, skills: Guidance) -> Guidance:
    """Return documents with the files of skills."""
    return _sort_files([*documents, *skills])


def _is_shared(path: str, by_fixture: Mapping[str, Mapping[str, FixtureFile]]) -> bool:
    if _owner(path, by_fixture) is not None:
        # Without its own prefix it would be read as guidance of that one fixture.
        return False
    contents = {files[path].content if path in files else None for files in by_fixture.values()}
    return len(contents) == 1


def _owner(path: str, names: Iterable[str]) -> str | None:
    """Return the fixture whose name precedes the path; the longest, as names may have folders."""
    owners = [name for name in names if name and path.startswith(name + "/")]
    return max(owners, key=len, default=None)


def _by_path(files: Iterable[FixtureFile]) -> dict[str, FixtureFile]:
    return {file.path: file for file in files}


def _sort_files(files: Iterable[FixtureFile]) -> tuple[FixtureFile, ...]:
    return tuple(sorted(files, key=lambda file: file.path))

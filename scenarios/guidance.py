"""The documents an agent reads, such as AGENTS.md: told from a fixture by name, versioned apart from it."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping, Sequence

from scenarios.formats.parsed import Fixture, FixtureFile, ParsedSuite
from scenarios.globs import matches

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
"""Names under which agents look for guidance; `**` stands for any folders, none included."""


def is_guidance(path: str, extra: Sequence[str] = ()) -> bool:
    """Tell a guidance file by its path in the workspace; `extra` are further patterns of the project."""
    return any(matches(path, pattern) for pattern in (*GUIDANCE_PATTERNS, *extra))


def split(fixture: Fixture, extra: Sequence[str] = ()) -> tuple[Fixture, Guidance]:
    """Return a fixture without its guidance files, and these."""
    rest = tuple(file for file in fixture if not is_guidance(file.path, extra))
    return rest, tuple(file for file in fixture if is_guidance(file.path, extra))


def suite_guidance(suite: ParsedSuite, extra: Sequence[str] = ()) -> Guidance:
    """Return the guidance that a suite was uploaded with.

    A file that is the same in every workspace stands under its path there. Where workspaces differ in it, or
    one lacks it, its path is preceded by the name of its fixture.
    """
    found = {name: _by_path(split(fixture, extra)[1]) for name, fixture in suite.fixtures.items()}
    if not all(scenario.worker_fixture for scenario in suite.scenarios):
        found[""] = {}
    paths = sorted({path for files in found.values() for path in files})
    shared = {path for path in paths if _is_shared(path, found)}
    common = [next(files[path] for files in found.values()) for path in sorted(shared)]
    own = [
        FixtureFile(f"{name}/{path}", file.content, file.executable)
        for name, files in found.items()
        for path, file in files.items()
        if path not in shared
    ]
    return _sorted([*common, *own])


def named_guidelines(suite: ParsedSuite) -> tuple[str, ...]:
    """Return the files that scenarios name as guidelines, which are guidance whatever they are called."""
    return tuple(sorted({path for scenario in suite.scenarios for path in scenario.guidelines}))


class Unplaced(ValueError):
    """A document that could take the place of several, or of none; the message is a sentence without the remedy."""


def placed(given: Guidance, own: Guidance, *, named: Collection[str] = ()) -> Guidance:
    """Return documents under the paths of those of a suite's own that they take the places of, in their order.

    One alone takes the place of the only own document, whatever its file is called. Others are placed by their path,
    else by their file name. Paths that are `named` are meant as they are. Raises `Unplaced`.
    """
    paths = tuple(file.path for file in own)
    found: dict[str, FixtureFile] = {}
    for file in given:
        path = file.path if file.path in named else _place(file.path, paths, alone=len(given) == 1)
        if path in found:
            raise Unplaced(f"Two of the documents would take the place of {path}.")
        found[path] = FixtureFile(path, file.content, file.executable)
    return tuple(found.values())


def replaced(own: Guidance, documents: Guidance) -> Guidance:
    """Return a suite's guidance with documents in place of its own of the same paths, and the others as they are."""
    return _sorted({**_by_path(own), **_by_path(documents)}.values())


def _place(path: str, own: Sequence[str], *, alone: bool) -> str:
    """Return the path at which a document is laid down."""
    if path in own:
        return path
    if alone and len(own) == 1:
        return own[0]
    same = [each for each in own if posixpath.basename(each) == posixpath.basename(path)]
    if len(same) == 1:
        return same[0]
    if is_guidance(path) and not same and not (alone and own):
        return path
    if not own:
        raise Unplaced(
            f"The suite has no document whose place '{path}' could take, and no agent looks for that name."
        )
    raise Unplaced(f"'{path}' could take the place of several documents: {', '.join(own)}.")


def lay_over(
    fixture: Fixture,
    guidance: Guidance,
    *,
    name: str,
    names: Collection[str],
    extra: Sequence[str] = (),
) -> Fixture:
    """Return a fixture with a run's guidance in place of its own.

    Guidance files that the run's guidance does not name are removed. `name` is the fixture's own, empty
    for an empty workspace; `names` are those of all fixtures of the suite, whose prefixes are for them alone.
    """
    rest, _ = split(fixture, extra)
    files = _by_path(rest)
    common = [file for file in guidance if _owner(file.path, names) is None]
    own = [
        FixtureFile(file.path.removeprefix(name + "/"), file.content, file.executable)
        for file in guidance
        if name and _owner(file.path, names) == name
    ]
    files.update(_by_path(common))
    files.update(_by_path(own))
    return _sorted(files.values())


def _is_shared(path: str, found: Mapping[str, Mapping[str, FixtureFile]]) -> bool:
    if _owner(path, found) is not None:
        # Without a prefix of its own it would read as the guidance of that one fixture.
        return False
    contents = {files[path].content if path in files else None for files in found.values()}
    return len(contents) == 1


def _owner(path: str, names: Iterable[str]) -> str | None:
    """Return the fixture whose name precedes the path; the longest, as names may have folders."""
    owners = [name for name in names if name and path.startswith(name + "/")]
    return max(owners, key=len, default=None)


def _by_path(files: Iterable[FixtureFile]) -> dict[str, FixtureFile]:
    return {file.path: file for file in files}


def _sorted(files: Iterable[FixtureFile]) -> tuple[FixtureFile, ...]:
    return tuple(sorted(files, key=lambda file: file.path))

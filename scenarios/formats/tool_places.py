"""Find a tool that isn't where a prompt or a skill calls it by its path."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from scenarios.formats.parsed import Fixture, ParsedSuite, Problem
from scenarios.spec import ScenarioSpec

SKILL = "SKILL.md"
FIX = "Lay the file there, or correct the path."


class _Call(NamedTuple):
    """A path by which a text calls the tool."""

    path: str
    line: int
    """In the text."""


class _Document(NamedTuple):
    """A skill's document as it lies in workspaces."""

    path: str
    content: bytes


def with_tool_hints(suites: Sequence[ParsedSuite], files: Mapping[str, bytes]) -> tuple[ParsedSuite, ...]:
    """Return suites with a hint for each path of the named tool that neither the workspace nor the skill has.

    `files` are those of the upload, by which a hint names a skill's document.
    """
    return tuple(
        replace(suite, lints=(*suite.lints, *hints)) if (hints := list(_hints(suite, files))) else suite
        for suite in suites
    )


def _hints(suite: ParsedSuite, files: Mapping[str, bytes]) -> Iterator[Problem]:
    lacking: dict[tuple[_Document, _Call], list[ScenarioSpec]] = {}
    for spec in suite.scenarios:
        name = _tool_name(spec)
        if not name or any(name in command for command in spec.setup):
            continue
        fixture = suite.fixtures.get(spec.worker_fixture, ())
        for call in _calls(spec.prompt, name):
            if not _is_there(call.path, fixture, ""):
                what = f"The prompt calls `./{call.path}`, which the workspace doesn't have{_elsewhere(name, [spec], suite)}."
                yield _hint(spec.file or spec.key, max(spec.line, 1), what)
        for document in (_Document(each.path, each.content) for each in fixture):
            if posixpath.basename(document.path) != SKILL:
                continue
            for call in _calls(document.content.decode(errors="replace"), name):
                if not _is_there(call.path, fixture, posixpath.dirname(document.path)):
                    lacking.setdefault((document, call), []).append(spec)
    for (document, call), specs in lacking.items():
        name = _tool_name(specs[0])
        lacks = (
            "no case has"
            if len(specs) == len(suite.scenarios)
            else f"{len(specs)} of {len(suite.scenarios)} cases don't have"
        )
        what = f"{SKILL} calls `./{call.path}`, which {lacks} in its workspace or in the skill{_elsewhere(name, specs, suite)}."
        same = (
            path
            for path in sorted(files)
            if posixpath.basename(path) == SKILL and files[path] == document.content
        )
        yield _hint(next(same, document.path), call.line, what)


def _hint(file: str, line: int, what: str) -> Problem:
    return Problem(file, line, "", what, FIX, "format/tool-not-there", lint=True)


def _tool_name(spec: ScenarioSpec) -> str:
    """Return the name of a scenario's tool; empty for none, and for a command of several words."""
    binary = spec.criteria.tool.binary.strip() if spec.criteria.tool else ""
    return "" if " " in binary else posixpath.basename(binary)


def _calls(text: str, name: str) -> list[_Call]:
    """Return the paths by which a text calls a tool, each with its first line."""
    found: dict[str, int] = {}
    pattern = rf"(?<![\w./~$}}-])\./((?:[\w.-]+/)*{re.escape(name)}(?:\.\w+)?)(?![\w/-])"
    for match in re.finditer(pattern, text):
        found.setdefault(posixpath.normpath(match[1]), text.count("\n", 0, match.start()) + 1)
    return [_Call(path, line) for path, line in found.items()]


def _is_there(path: str, fixture: Fixture, folder: str) -> bool:
    """Return whether a workspace has a path, at its root or in a skill's folder."""
    return any(file.path in (path, posixpath.join(folder, path)) for file in fixture)


def _elsewhere(name: str, specs: Sequence[ScenarioSpec], suite: ParsedSuite) -> str:
    """Return where the first of these scenarios has a file of that name."""
    for spec in specs:
        for file in suite.fixtures.get(spec.worker_fixture, ()):
            if posixpath.splitext(posixpath.basename(file.path))[0] == posixpath.splitext(name)[0]:
                return f"; {spec.key} has it at {file.path}"
    return ""

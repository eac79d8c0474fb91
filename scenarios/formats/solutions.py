"""Separate reference solutions from an upload: `solutions/<key>.sh`, beside a scenario file or at the root.

A solution proves that its scenario can pass. It isn't part of the task, and agents never get it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from evalhub.lib.storable_text import make_storable
from scenarios.formats.parsed import ParsedSuite, PositionedDocument, Problem
from scenarios.formats.upload import UploadedFiles, in_fixture
from scenarios.spec import ScenarioSpec

FOLDER = "solutions"
_ENDING = ".sh"


def split_solutions(
    upload: UploadedFiles, documents: Sequence[PositionedDocument], fixtures: Set[str]
) -> tuple[UploadedFiles, dict[str, str]]:
    """Return the upload without its solutions, and the solutions' texts by path.

    `documents` are the scenario files; files in `fixtures` aren't solutions.
    """
    folders = {"", *(posixpath.dirname(each.file) for each in documents)}
    prefixes = tuple(posixpath.join(folder, FOLDER) + "/" for folder in folders)
    solutions = {
        path: make_storable(content.decode("utf-8", "replace").replace("\r\n", "\n"))
        for path, content in upload.files.items()
        if path.startswith(prefixes) and path.endswith(_ENDING) and not in_fixture(path, fixtures)
    }
    if not solutions:
        return upload, {}
    rest = {path: content for path, content in upload.files.items() if path not in solutions}
    return replace(upload, files=rest), solutions


def with_solutions(suites: Sequence[ParsedSuite], scripts: Mapping[str, str]) -> tuple[ParsedSuite, ...]:
    """Return the suites with their scenarios' solutions, and a lint for each script without a scenario."""
    if not scripts or not suites:
        return tuple(suites)
    paths = {path for suite in suites for spec in suite.scenarios for path in _paths(spec) if path in scripts}
    first, *others = (replace(suite, solutions=_solutions(suite, scripts)) for suite in suites)
    lints = tuple(_without_scenario(path) for path in sorted(scripts.keys() - paths))
    return replace(first, lints=(*first.lints, *lints)), *others


def _solutions(suite: ParsedSuite, scripts: Mapping[str, str]) -> dict[str, str]:
    return {
        spec.key: scripts[path]
        for spec in suite.scenarios
        if (path := next((path for path in _paths(spec) if path in scripts), None)) is not None
    }


def _paths(spec: ScenarioSpec) -> Iterator[str]:
    """Yield where a scenario's solution may be, the nearest first."""
    yield posixpath.join(posixpath.dirname(spec.file), FOLDER, spec.key + _ENDING)
    yield posixpath.join(FOLDER, spec.key + _ENDING)


def _without_scenario(path: str) -> Problem:
    key = posixpath.basename(path).removesuffix(_ENDING)
    return Problem(
        file=path,
        line=1,
        where="",
        what=f"No scenario is called '{key}', so nothing runs this solution.",
        fix="Name the script after its scenario's key.",
        id="solution/no-scenario",
        lint=True,
    )

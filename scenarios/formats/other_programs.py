"""Say which program's files an upload holds, if it holds no scenario."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace

from evaluators.tool_use.recognised_files import (
    PROMPTFOO,
    not_read,
    recognised_results,
    recognised_session,
    recognised_suite,
)
from evaluators.transcripts.reading import decode_text
from scenarios.formats.agentv import is_program
from scenarios.formats.parsed import PositionedDocument, Problem, ScenarioFileError
from scenarios.formats.upload import READERS, decode_file

SETTINGS = "evals/config.yml, the settings of another program"
TYPESCRIPT = "an eval of AgentV in TypeScript"
_READ_ELSEWHERE: Mapping[str, str] = {
    "a targets file": "Upload it with its suite, or pass it with --targets.",
    "a rubric": "Upload it with its scenario.",
}
"""Files that evalhub reads beside a suite, and how to give them."""
_FIXES: Mapping[str, str] = {
    TYPESCRIPT: "It is a program, which evalhub doesn't run: write its cases as YAML; see docs/formats/agentv.md.",
    PROMPTFOO: "Import its results with import_results; see docs/command-line.md.",
}


def problems_of_others(files: Mapping[str, bytes]) -> list[Problem]:
    """Return a problem for each file that is recognised as another program's; none if no file is."""
    kinds = ((path, _kind(path, files[path])) for path in sorted(files))
    return [_problem(path, kind) for path, kind in kinds if kind]


def hints_of_others(files: Mapping[str, bytes]) -> list[Problem]:
    """Return a hint for each file of another program beside cases that are read."""
    kinds = ((path, _kind(path, files[path])) for path in sorted(files))
    return [
        replace(_problem(path, kind), id="format/unread-file", lint=True)
        for path, kind in kinds
        if kind and kind not in _READ_ELSEWHERE
    ]


def _kind(path: str, content: bytes) -> str:
    if is_program(path):
        return TYPESCRIPT
    folder, name = posixpath.split(path)
    if posixpath.basename(folder) == "evals" and name in ("config.yml", "config.yaml"):
        return SETTINGS
    text = decode_text(content, "replace")
    if kind := recognised_session(text):
        return kind
    document = _decode(path, content)
    return recognised_suite(document.value) if document else recognised_results(text, None)


def _decode(path: str, content: bytes) -> PositionedDocument | None:
    # No known program's suite is a list of lines.
    suffix = posixpath.splitext(path)[1].lower()
    if suffix == ".jsonl" or suffix not in READERS:
        return None
    try:
        return decode_file(path, content)
    except ScenarioFileError:
        return None


def _problem(path: str, kind: str) -> Problem:
    elsewhere = _READ_ELSEWHERE.get(kind)
    return Problem(
        file=path,
        line=1,
        where="",
        what=f"This is {kind}, no scenario." if elsewhere else f"N{not_read(kind)[1:]}.",
        fix=elsewhere or _FIXES.get(kind, "See docs/formats/ for the files that can be uploaded."),
        id="format/no-scenario",
    )

"""Agent Skills: a skill's `evals/evals.json` and its lists of trigger queries. Each file is a suite.

The skill itself is the suite's guidance; of its evals, an agent gets only the files that a case names.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from scenarios.formats.agent_skills.case_lists import FOLDERS, find_cases, holds_cases
from scenarios.formats.parsed import PositionedDocument
from scenarios.formats.upload import Format, Parsed, UploadedFiles, is_below, resolve_inside

__all__ = ["FOLDERS", "FORMAT", "NAME", "TRIGGERS", "find_named_paths", "is_trigger_suite"]

NAME = "agent_skills"
TRIGGERS = "-triggers"
"""The end of the name of a suite whose cases all say whether the skill must be loaded."""


def is_trigger_suite(format: str, slug: str) -> bool:
    """Return whether a suite's cases all say whether a skill must be loaded."""
    return format == NAME and slug.endswith(TRIGGERS)


def parse(upload: UploadedFiles, documents: Sequence[PositionedDocument]) -> Parsed:
    """Parse each eval file as one suite."""
    # Imported here because importing takes longer than parsing.
    from scenarios.formats.agent_skills.eval_files import read_eval_files

    return Parsed.of(*read_eval_files(upload, documents))


def fixture_folders(upload: UploadedFiles, documents: Sequence[PositionedDocument]) -> frozenset[str]:
    """Return files that cases name, and folders of workspaces and of skills; nothing in them is a scenario."""
    from scenarios.formats.agent_skills.gates_file import workspace_folder

    eval_folders = {posixpath.dirname(document.file) for document in documents}
    named = {path for document in documents for path in find_named_paths(document, upload)}
    fixtures = (
        named
        | {posixpath.dirname(path) for path in named}
        | {workspace_folder(upload, eval_folder) for eval_folder in eval_folders}
    )
    parts = ("scripts", "references", "assets")
    skills = {posixpath.dirname(path) for path in upload.files if posixpath.basename(path) == "SKILL.md"}
    fixtures |= {
        folder
        for skill in skills
        for part in parts
        if (folder := posixpath.join(skill, part)) in upload.folders
    }
    return frozenset(
        folder
        for folder in fixtures
        if not any(is_below(folder, eval_folder) for eval_folder in eval_folders)
    )


def find_named_paths(document: PositionedDocument, upload: UploadedFiles) -> Iterator[str]:
    """Yield the files and folders of the upload that a document's cases name."""
    from scenarios.formats.agent_skills.case_files import list_file_places

    listed = (case.get("files") for case, _ in find_cases(document.value) if isinstance(case, dict))
    names = {name for files in listed if isinstance(files, list) for name in files if isinstance(name, str)}
    for name in names:
        for base in list_file_places(document.file, (), upload):
            path = resolve_inside(base, name)
            if path and (path in upload.files or path in upload.folders):
                yield path


def companions(document: PositionedDocument) -> tuple[str, ...]:
    """Return nothing: a skill lies in the folder above its evals, so a single file isn't enough."""
    return ()


FORMAT = Format(NAME, holds_cases, parse, fixture_folders, companions)

"""Compare a trial's workspace with its start, file by file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, F, QuerySet, When

from evalhub.lib.limits import LONGEST_TEXT
from evalhub.web.sanitize import mark_invisible
from evaluators.redaction import redact_patterns
from runs.models import Artifact, Trial
from runs.results.files.artifacts import StoredFileUnavailable, open_stored
from runs.results.files.workspace_archive import (
    UNREADABLE,
    Change,
    KeptFile,
    is_gits_own,
    kept_files,
    text_of_file,
)
from scenarios.differences import TextDifference, lines_of, text_difference
from scenarios.formats.parsed import FixtureFile
from scenarios.guidance import lay_guidance_over
from scenarios.models import ScenarioVersion
from scenarios.storing import guidance_files, unpack

ARTIFACT = "workspace"
MOST_FILES = 200
"""Maximum listed files."""
MOST_DIFFERENCES = 30
"""Maximum files with their text."""
MOST_TEXT = 300_000
"""Maximum bytes of text compared for one page."""

IMPORTED = "Imported results have no workspace."
NOT_YET = "The workspace is stored when the agent finishes."
NONE_KEPT = "No workspace stored: the trial had none, or its files were pruned."
GONE = "The stored workspace is damaged. Restore it from a backup."
AFTER_SETUP = "Includes changes made by the scenario's setup commands."
EMPTY = "Empty file."
NO_TEXT = "Binary file; only sizes are compared."
LARGE = f"Files over {LONGEST_TEXT // 1000} kB are not compared here."
LONG = "Text over 1,000 lines is not compared here."
MANY = "Too many changes to compare this file here."
UNSEEN = "Only hidden text differs: a secret or the final line break."
EMPTY_START = "The workspace started empty, with the scenario's files next to it."


@dataclass(frozen=True)
class FileChange:
    """A file that differs from the workspace's start."""

    path: str
    change: Change
    before: int | None
    """Size in bytes at the start; None if missing."""
    after: int | None
    number: int | None
    """Its position in the stored workspace; None if missing."""
    difference: TextDifference | None = None
    note: str = ""
    """Why no difference is shown."""


@dataclass(frozen=True)
class WorkspaceChanges:
    """A workspace's changes, or why they are unknown."""

    files: tuple[FileChange, ...] = ()
    """The first changed files, by path."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of all changed files by kind of change."""
    git_files: int = 0
    """Changed files in .git, which are not listed or counted above."""
    unchanged: int = 0
    left_out: tuple[str, ...] = ()
    """The first files that were too large, too many or too late to store."""
    more_left_out: int = 0
    problem: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def workspace_changes(trial: Trial, artifacts: list[Artifact]) -> WorkspaceChanges:
    """Return the changes in a trial's workspace. One query; expects the run's guidance and target to be loaded."""
    stored = next((each for each in artifacts if each.name == ARTIFACT), None)
    recorded = trial.detail.get("workspace")
    if stored is None and not (recorded or {}).get("empty"):
        return WorkspaceChanges(problem=_why_none(trial))
    left_out = tuple(recorded["left_out"]) if recorded else ()
    start = {file.path: file.content for file in _start(trial) if file.path not in left_out}
    try:
        every = sorted(_changes(stored, start), key=lambda change: change.path)
    except StoredFileUnavailable as error:
        return WorkspaceChanges(problem=str(error))
    except UNREADABLE:
        return WorkspaceChanges(problem=GONE)
    changes = [change for change in every if not is_gits_own(change.path)]
    return WorkspaceChanges(
        files=tuple(changes[:MOST_FILES]),
        counts=Counter(change.change for change in changes),
        git_files=len(every) - len(changes),
        unchanged=len(start) - sum(change.before is not None for change in every),
        left_out=left_out,
        more_left_out=recorded.get("more_left_out", 0) if recorded else 0,
        remarks=tuple(_remarks(trial.scenario_version.content)),
    )


def _why_none(trial: Trial) -> str:
    if trial.run.target.is_imported:
        return IMPORTED
    return NONE_KEPT if trial.outcome or trial.state == "cancelled" else NOT_YET


def _remarks(content: Mapping[str, Any]) -> Iterator[str]:
    if content.get("setup"):
        yield AFTER_SETUP
    if content.get("bundle"):
        yield EMPTY_START


def _start(trial: Trial) -> tuple[FixtureFile, ...]:
    """Return the workspace's start: the scenario's fixture with the run's guidance on top."""
    content = trial.scenario_version.content
    if content.get("bundle"):
        return ()
    rows = list(_bundle_files(trial.run.suite_version_id, trial.scenario_version_id))
    archive = next((bytes(row[2]) for row in rows if row[2] is not None), None)
    return lay_guidance_over(
        unpack(archive) if archive is not None else (),
        guidance_files(trial.run.guidance),
        name=content.get("fixture") or "",
        names={name for row in rows for name in row[:2] if name},
    )


def _bundle_files(suite_version: int, mine: int) -> QuerySet[ScenarioVersion, Any]:
    """Return the names of the fixtures and bundles of a suite's scenarios, and the archive of one of them."""
    with_fixture = ScenarioVersion.objects.filter(suite_versions=suite_version, fixture__isnull=False)
    archive = Case(When(pk=mine, then=F("fixture__archive")))
    return with_fixture.order_by().values_list("content__fixture", "content__bundle", archive)


def _changes(stored: Artifact | None, start: Mapping[str, bytes]) -> Iterator[FileChange]:
    """Yield the changed files. Raises one of `UNREADABLE`."""
    seen, room = set[str](), _Room()

    def is_read(file: KeptFile) -> bool:
        return file.size <= LONGEST_TEXT or file.size == len(start.get(file.path, b""))

    with open_stored(stored.sha256) if stored else nullcontext() as archive:
        for file, content in kept_files(archive, is_read) if archive else ():
            seen.add(file.path)
            before = start.get(file.path)
            if not is_read(file) or before != content:
                change: Change = "added" if before is None else "changed"
                yield _change(file.path, change, before, content, file.size, file.number, room)
    for path in sorted(start.keys() - seen):
        yield _change(path, "removed", start[path], None, None, None, room)


@dataclass
class _Room:
    """Files and characters that still fit on the page, because comparing and redacting takes time."""

    files: int = MOST_DIFFERENCES
    characters: int = MOST_TEXT

    def takes(self, size: int) -> bool:
        """Reserve room for a text and return whether it fits."""
        fits = self.files > 0 and self.characters >= size
        if fits:
            self.files -= 1
            self.characters -= size
        return fits


def _change(
    path: str,
    change: Change,
    before: bytes | None,
    after: bytes | None,
    size: int | None,
    number: int | None,
    room: _Room,
) -> FileChange:
    old = None if before is None else len(before)
    difference: TextDifference | None = None
    if is_gits_own(path):
        note = ""
    elif max(old or 0, size or 0) > LONGEST_TEXT:
        note = LARGE
    elif not room.takes((old or 0) + (size or 0)):
        note = MANY
    else:
        difference, note = _difference(before or b"", after or b"")
    return FileChange(path, change, old, size, number, difference, note)


def _difference(before: bytes, after: bytes) -> tuple[TextDifference | None, str]:
    """Return the difference between two contents, or why it is not shown."""
    texts = [text_of_file(content) for content in (before, after)]
    if None in texts:
        return None, NO_TEXT
    difference = text_difference(
        *(
            lines_of(redact_patterns("\n".join(map(mark_invisible, text.split("\n")))))
            for text in texts
            if text is not None
        )
    )
    if difference is None:
        return None, LONG
    return (difference, "") if difference.hunks else (None, UNSEEN if before or after else EMPTY)

"""Store a trial's files and describe what changed in its workspace, within limits of time and size."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from evalhub.lib.limits import LONGEST_TEXT
from evaluators.model import Json
from evaluators.redaction import mask_values, mask_values_in_bytes
from runs.engine.workspace.workspace import TrialFolder
from runs.results.files.artifacts import StoredFile, keep_content
from runs.results.files.workspace_archive import (
    KINDS,
    ChangedFile,
    archive_workspace,
    changed_files,
    changed_lines,
    is_gits_own,
)
from runs.sandbox.safe_paths import read_beneath
from runs.sandbox.safe_walk import is_empty
from runs.targets.providers.base import Recording
from scenarios.formats.parsed import FixtureFile

SECONDS = 30.0
"""For each step: storing the workspace, cleaning Git settings, hashing what gates run."""


class TimeLeft:
    """The time of one step, which a cancelled trial ends, too."""

    def __init__(self, seconds: float = SECONDS, *, stopped: Callable[[], bool] = lambda: False) -> None:
        self._end = time.monotonic() + seconds
        self._stopped = stopped

    @property
    def is_up(self) -> bool:
        """Whether the step must end."""
        return time.monotonic() >= self._end or self._stopped()


MOST_NAMED = 8
"""Most changed files in a trial's detail; the stored workspace has all of them."""
MOST_LEFT_OUT = 100


@dataclass(frozen=True)
class KeptFiles:
    """The stored files and the changes of the workspace."""

    rows: tuple[StoredFile, ...] = ()
    workspace: dict[str, Json] = field(default_factory=dict)
    """The changes of the workspace, for the trial's detail; empty without one."""

    @property
    def changed_paths(self) -> list[str]:
        """The paths of changed files, as many as the trial's detail names."""
        return changed_paths(self.workspace)


def changed_paths(workspace: Mapping[str, Any]) -> list[str]:
    """Return the paths of changed files that a trial's detail of its workspace names."""
    return [each["path"] for each in workspace.get("files", ())]


def keep_trial_files(
    recording: Recording,
    folder: TrialFolder | None,
    secrets: tuple[str, ...] = (),
    start: Sequence[FixtureFile] = (),
    left: TimeLeft | None = None,
) -> KeptFiles:
    """Store the raw output, events, workspace and logs, without the secret values.

    `start` has the initial files of the workspace. Files that the time `left` isn't enough for are named instead.
    """
    outputs = []
    if recording.raw:
        outputs.append(keep_content("transcript", recording.raw))
    if recording.events:
        outputs.append(keep_content("events", recording.events, "application/jsonl"))
    if recording.stderr:
        outputs.append(keep_content("stderr", recording.stderr.encode("utf-8", "replace")))
    workspace = (
        _keep_workspace(folder, secrets, start, left or TimeLeft()) if folder is not None else KeptFiles()
    )
    masked = (
        keep_content(name, mask_values_in_bytes(content, secrets)) for name, content in recording.logs.items()
    )
    return KeptFiles((*outputs, *workspace.rows, *masked), workspace.workspace)


def _keep_workspace(
    folder: TrialFolder, secrets: tuple[str, ...], start: Sequence[FixtureFile], left: TimeLeft
) -> KeptFiles:
    if is_empty(folder.workspace):
        # An empty workspace is recorded as such, unlike files deleted since.
        return KeptFiles(workspace=_changes(folder, start, secrets) | {"empty": True})
    packed = archive_workspace(folder.workspace, secrets=secrets, is_late=lambda: left.is_up)
    row = keep_content("workspace", packed.content, "application/gzip")
    return KeptFiles((row,), _changes(folder, start, secrets, packed.left_out))


def _changes(
    folder: TrialFolder,
    start: Sequence[FixtureFile],
    secrets: tuple[str, ...],
    left_out: tuple[str, ...] = (),
) -> dict[str, Json]:
    before = {file.path: file.content for file in start}
    every = changed_files(folder.workspace, start)
    changed = [each for each in every if not is_gits_own(each.path)]
    kinds = Counter(each.change for each in changed)
    counts: dict[str, Json] = {name: kinds[name] for name in KINDS}
    counts["git"] = len(every) - len(changed)
    counted = (
        _count_lines(changed_file, folder.workspace, before.get(changed_file.path, b""))
        for changed_file in changed[:MOST_NAMED]
    )
    named = [asdict(each) | {"path": mask_values(each.path, secrets)} for each in counted]
    more = len(left_out) - MOST_LEFT_OUT
    found: dict[str, Json] = {"files": named, "left_out": list(left_out[:MOST_LEFT_OUT])}
    return counts | found | ({"more_left_out": more} if more > 0 else {})


def _count_lines(file: ChangedFile, workspace: Path, before: bytes) -> ChangedFile:
    """Return the file with its added and removed lines, if it can be compared."""
    try:
        after = b"" if file.size is None else read_beneath(workspace, file.path, limit=LONGEST_TEXT)
    except OSError:  # too large, deleted, or not readable
        return file
    lines = changed_lines(before, after)
    return file if lines is None else replace(file, added=lines[0], removed=lines[1])

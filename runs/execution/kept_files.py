"""Which files of a trial are kept, and what is said of its workspace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from evaluators.model import Json
from evaluators.redaction import mask_values_in_bytes
from runs.containment.beneath import read_beneath
from runs.containment.trees import is_empty
from runs.execution.trial_folder import TrialFolder
from runs.providers.base import Recording
from runs.warehouse.artifacts import Kept, keep
from runs.warehouse.changed_lines import LONGEST, changed_lines
from runs.warehouse.workspace_archive import KINDS, ChangedFile, archive, changed_files, is_gits_own
from scenarios.formats.parsed import FixtureFile

MOST_NAMED = 8
"""Changed files that a trial's page names by itself; all of them are told from the kept workspace."""
MOST_LEFT_OUT = 100


@dataclass(frozen=True)
class KeptFiles:
    """The rows of what is kept, and what is said of the workspace."""

    rows: tuple[Kept, ...] = ()
    told: dict[str, Json] = field(default_factory=dict)
    """How the workspace differs from what it started from, for the trial's detail; empty without one."""


def keep_files(
    recording: Recording,
    folder: TrialFolder | None,
    secrets: tuple[str, ...] = (),
    start: Sequence[FixtureFile] = (),
) -> KeptFiles:
    """Keep the raw output, the events, what the agent left in the workspace, and its logs, without these values.

    `start` is what the workspace started from.
    """
    kept = []
    if recording.raw:
        kept.append(keep("transcript", recording.raw))
    if recording.events:
        kept.append(keep("events", recording.events, "application/jsonl"))
    if recording.stderr:
        kept.append(keep("stderr", recording.stderr.encode("utf-8", "replace")))
    workspace = _keep_workspace(folder, secrets, start) if folder is not None else KeptFiles()
    masked = (keep(name, mask_values_in_bytes(content, secrets)) for name, content in recording.logs.items())
    return KeptFiles((*kept, *workspace.rows, *masked), workspace.told)


def _keep_workspace(folder: TrialFolder, secrets: tuple[str, ...], start: Sequence[FixtureFile]) -> KeptFiles:
    if is_empty(folder.workspace):
        # Nothing is kept of it, which is not the same as files that are gone by now.
        return KeptFiles(told=_told(folder, start) | {"empty": True})
    packed = archive(folder.workspace, secrets=secrets)
    row = keep("workspace", packed.content, "application/gzip")
    return KeptFiles((row,), _told(folder, start, packed.left_out))


def _told(
    folder: TrialFolder, start: Sequence[FixtureFile], left_out: tuple[str, ...] = ()
) -> dict[str, Json]:
    before = {file.path: file.content for file in start}
    every = changed_files(folder.workspace, start)
    changed = [each for each in every if not is_gits_own(each.path)]
    kinds = Counter(each.change for each in changed)
    counts: dict[str, Json] = {name: kinds[name] for name in KINDS}
    counts["git"] = len(every) - len(changed)
    counted = (_counted(each, folder.workspace, before.get(each.path, b"")) for each in changed[:MOST_NAMED])
    named = [asdict(each) for each in counted]
    return counts | {"files": named, "left_out": list(left_out[:MOST_LEFT_OUT])}


def _counted(file: ChangedFile, workspace: Path, before: bytes) -> ChangedFile:
    """Return the file with the lines that came and went, where they are compared."""
    try:
        after = b"" if file.size is None else read_beneath(workspace, file.path, limit=LONGEST)
    except OSError:  # too large, gone, or closed to us
        return file
    lines = changed_lines(before, after)
    return file if lines is None else replace(file, added=lines[0], removed=lines[1])

"""Which files of a trial are kept."""

from __future__ import annotations

from runs.artifacts import Kept, keep
from runs.providers.base import Recording
from runs.trial_folder import TrialFolder
from runs.workspace_contents import archive


def keep_files(recording: Recording, folder: TrialFolder | None) -> tuple[Kept, ...]:
    """Keep the raw output, the events, what the agent left in the workspace, and its logs."""
    kept = []
    if recording.raw:
        kept.append(keep("transcript", recording.raw))
    if recording.events:
        kept.append(keep("events", recording.events, "application/jsonl"))
    if recording.stderr:
        kept.append(keep("stderr", recording.stderr.encode()))
    if folder is not None and any(folder.workspace.iterdir()):
        kept.append(keep("workspace", archive(folder.workspace).content, "application/gzip"))
    return (
        *kept,
        *(keep(name, path.read_bytes()) for name, path in recording.logs.items() if path.is_file()),
    )

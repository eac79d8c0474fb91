"""Which files of a trial are kept."""

from __future__ import annotations

from evaluators.redaction import mask_values_in_bytes
from runs.artifacts import Kept, keep
from runs.providers.base import Recording
from runs.trial_folder import TrialFolder
from runs.workspace_contents import archive


def keep_files(
    recording: Recording, folder: TrialFolder | None, secrets: tuple[str, ...] = ()
) -> tuple[Kept, ...]:
    """Keep the raw output, the events, what the agent left in the workspace, and its logs, without these values."""
    kept = []
    if recording.raw:
        kept.append(keep("transcript", recording.raw))
    if recording.events:
        kept.append(keep("events", recording.events, "application/jsonl"))
    if recording.stderr:
        kept.append(keep("stderr", recording.stderr.encode("utf-8", "replace")))
    if folder is not None and any(folder.workspace.iterdir()):
        packed = archive(folder.workspace, secrets=secrets).content
        kept.append(keep("workspace", packed, "application/gzip"))
    logs = {name: path.read_bytes() for name, path in recording.logs.items() if path.is_file()}
    return (*kept, *(keep(name, mask_values_in_bytes(content, secrets)) for name, content in logs.items()))

"""The directories of one trial: some for its commands, one for the worker only."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runs.engine.workspace.work_area import own_area
from runs.engine.workspace.workspace import fill, fresh_folder
from runs.errors import ProviderError
from runs.sandbox.safe_paths import write_beneath
from runs.sandbox.safe_walk import remove_tree
from scenarios.formats.parsed import FixtureFile

logger = logging.getLogger(__name__)

_NAMES = ("workspace", "scratch", "bundle", "record", "server", "door", "kept")


@dataclass(frozen=True)
class TrialFolder:
    """Paths on the host; they are removed after the trial."""

    workspace: Path
    scratch: Path
    bundle: Path
    """Files of a scenario outside the workspace: attachments, guidelines; judges' scripts after the agent."""
    record: Path
    """Written by the worker after the agent, for commands that read it."""
    server: Path
    """Of the MCP server under test and its proxy, out of the agent's reach."""
    door: Path
    """Where agents reach the proxy; they can't write there."""
    kept: Path
    """Protected files as they stood after setup; no command sees them."""

    @property
    def transcript(self) -> Path:
        """The agent's raw output, for scripts (`LLM_TOOL_TEST_TRANSCRIPT`)."""
        return self.record / "transcript.raw.txt"

    @property
    def events(self) -> Path:
        """Structured events, for scripts (`LLM_TOOL_TEST_EVENTS`)."""
        return self.record / "events.jsonl"

    def write_record(self, raw: bytes, events: bytes | None) -> None:
        """Write the agent's output into its new directory. Raises `ProviderError` if that exists."""
        try:
            self.record.mkdir()
        except FileExistsError as error:
            raise ProviderError(
                f"The trial wrote to {self.record.name}, where only evalhub writes. "
                "Run it in a sandbox (EVALHUB_SANDBOX).",
                kind="command",
            ) from error
        write_beneath(self.record, self.transcript.name, raw)
        write_beneath(self.record, self.events.name, events or b"")

    def lay_judging(self, files: Sequence[FixtureFile]) -> None:
        """Lay the bundle's files that judge when the agent has ended. Raises `ProviderError` if their place is taken."""
        for path in (file.path for file in files):
            if os.path.lexists(self.bundle / path) or not _is_real(self.bundle, path.rpartition("/")[0]):
                raise ProviderError(
                    f"The trial wrote to {self.bundle.name}/{path}, where only evalhub writes. "
                    "Run it in a sandbox (EVALHUB_SANDBOX).",
                    kind="command",
                )
        fill(self.bundle, files)


def _is_real(root: Path, folder: str) -> bool:
    """Return whether each step to a folder is a folder itself, as far as it exists."""
    while folder:
        state = (root / folder).lstat() if os.path.lexists(root / folder) else None
        if state and not stat.S_ISDIR(state.st_mode):
            return False
        folder = folder.rpartition("/")[0]
    return True


@contextmanager
def trial_folder(
    root: Path,
    files: tuple[FixtureFile, ...],
    bundle: tuple[FixtureFile, ...] | None = None,
    *,
    inside: str = "",
) -> Iterator[TrialFolder]:
    """Create the directories with these files in workspace and bundle; remove them in the end.

    Without a bundle (None) it has no directory, and `write_record` makes that of the record. `inside` is the bundle's
    folder where commands start, which may have no files yet.
    """
    base = fresh_folder(own_area(root), "trial-")
    folder = TrialFolder(*(base / name for name in _NAMES))
    try:
        folder.workspace.mkdir()
        folder.scratch.mkdir()
        fill(folder.workspace, files)
        if bundle is not None:
            (folder.bundle / inside).mkdir(parents=True)
            fill(folder.bundle, bundle)
        yield folder
    finally:
        try:
            remove_tree(base, folder.workspace, folder.scratch)
        except OSError as error:
            # The trial has its result; the next process that works here retries.
            logger.warning("%s was not removed: %s", base, error)


def placeholder_paths(root: Path) -> TrialFolder:
    """Return paths for a trial that needs no directories; none is created."""
    return TrialFolder(*(root / "none" / name for name in _NAMES))

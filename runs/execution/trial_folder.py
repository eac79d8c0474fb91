"""The directories of one trial: what its commands write to, and beside them what only the worker writes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from runs.containment.beneath import write_beneath
from runs.containment.trees import remove
from runs.errors import ProviderError
from runs.execution.work_area import own_area
from runs.execution.workspace import fill, fresh_folder
from scenarios.formats.parsed import FixtureFile

logger = logging.getLogger(__name__)

_NAMES = ("workspace", "scratch", "bundle", "record")


@dataclass(frozen=True)
class TrialFolder:
    """Paths of the host; they are gone when the trial is over."""

    workspace: Path
    scratch: Path
    bundle: Path
    """Files that came with a scenario and are no workspace: attachments, guidelines, scripts of its judges."""
    record: Path
    """What only the worker writes; commands read it once the agent is done."""

    @property
    def transcript(self) -> Path:
        """The agent's raw output, for scripts (`LLM_TOOL_TEST_TRANSCRIPT`)."""
        return self.record / "transcript.raw.txt"

    @property
    def events(self) -> Path:
        """Structured events, for scripts (`LLM_TOOL_TEST_EVENTS`)."""
        return self.record / "events.jsonl"

    def write_record(self, raw: bytes, events: bytes | None) -> None:
        """Write down what the agent printed. Raises `ProviderError` where something else has the name."""
        for path, content in ((self.transcript, raw), (self.events, events or b"")):
            try:
                write_beneath(self.record, path.name, content)
            except FileExistsError as error:
                raise ProviderError(
                    f"The trial wrote {path.name} where only evalhub writes. Run it in a sandbox (EVALHUB_SANDBOX).",
                    kind="command",
                ) from error


@contextmanager
def trial_folder(
    root: Path, files: tuple[FixtureFile, ...], bundle: tuple[FixtureFile, ...] | None = None
) -> Iterator[TrialFolder]:
    """Make the directories with these files in workspace and bundle, and remove all of it in the end.

    There is no directory for a bundle that is None.
    """
    base = fresh_folder(own_area(root), "trial-")
    folder = TrialFolder(*(base / name for name in _NAMES))
    try:
        folder.workspace.mkdir()
        folder.scratch.mkdir()
        folder.record.mkdir()
        fill(folder.workspace, files)
        if bundle is not None:
            folder.bundle.mkdir()
            fill(folder.bundle, bundle)
        yield folder
    finally:
        _remove(base, folder)


def _remove(base: Path, folder: TrialFolder) -> None:
    try:
        remove(base, folder.workspace, folder.scratch, folder.record)
    except OSError as error:
        # The trial has its result; the next process that works here tries again.
        logger.warning("%s was not removed: %s", base, error)


@cache
def placeholder_paths(root: Path) -> TrialFolder:
    """Return paths of a trial that needs no directories; none is made there."""
    return TrialFolder(*(root / "none" / name for name in _NAMES))

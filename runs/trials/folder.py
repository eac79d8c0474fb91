"""The directories of one trial: its workspace, and a scratch directory beside it that the agent's gates never see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from runs.trials.work_area import own_area
from runs.workspaces import fill, fresh_folder, remove
from scenarios.formats.parsed import FixtureFile


@dataclass(frozen=True)
class TrialFolder:
    """Paths of the host; they are gone when the trial is over."""

    workspace: Path
    scratch: Path
    bundle: Path
    """Files that came with a scenario and are no workspace: attachments, guidelines, scripts of its judges."""

    @property
    def transcript(self) -> Path:
        """The agent's raw output, for scripts (`LLM_TOOL_TEST_TRANSCRIPT`)."""
        return self.scratch / "transcript.raw.txt"

    @property
    def events(self) -> Path:
        """Structured events, for scripts (`LLM_TOOL_TEST_EVENTS`)."""
        return self.scratch / "events.jsonl"


@contextmanager
def trial_folder(
    root: Path, files: tuple[FixtureFile, ...], bundle: tuple[FixtureFile, ...] | None = None
) -> Iterator[TrialFolder]:
    """Make the directories with these files in workspace and bundle, and remove all of it in the end.

    There is no directory for a bundle that is None.
    """
    base = fresh_folder(own_area(root), "trial-")
    folder = TrialFolder(base / "workspace", base / "scratch", base / "bundle")
    try:
        folder.workspace.mkdir()
        folder.scratch.mkdir()
        fill(folder.workspace, files)
        if bundle is not None:
            folder.bundle.mkdir()
            fill(folder.bundle, bundle)
        yield folder
    finally:
        remove(base, folder.workspace, folder.scratch)


@cache
def nowhere(root: Path) -> TrialFolder:
    """Return paths of a trial that needs no directories; none is made there."""
    return TrialFolder(*(root / "none" / name for name in ("workspace", "scratch", "bundle")))

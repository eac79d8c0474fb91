"""Keep an agent from deciding its own gates: restore protected files, remove planted Git settings, report the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from evaluators.model import Json
from runs.engine.task import Task
from runs.engine.workspace import git_settings, watched_files
from runs.engine.workspace.git_settings import GitSettings
from runs.engine.workspace.protected_files import FileChanges, ProtectedFiles
from runs.engine.workspace.time_left import TimeLeft
from runs.engine.workspace.trial_folder import TrialFolder
from runs.engine.workspace.watched_files import WatchedFiles
from runs.engine.workspace.workspace import LocalWorkspace
from runs.errors import ProviderError
from runs.sandbox.safe_walk import close_folders, open_folders

_UNCHANGED = FileChanges()


@dataclass(frozen=True)
class Tampering:
    """What the agent did to files and settings that decide its gates."""

    protected: FileChanges = _UNCHANGED
    executed: tuple[str, ...] = ()
    """Files that it changed and gates run or name."""
    uncompared: int = 0
    """Such files that there was no time to compare."""
    git: tuple[str, ...] = ()
    """Git settings that were removed."""

    @property
    def warnings(self) -> list[str]:
        """Return a sentence for each kind."""
        return [
            *filter(None, [self.protected.sentence]),
            *([watched_files.warn_of_changed(self.executed)] if self.executed else []),
            *([watched_files.warn_of_uncompared(self.uncompared)] if self.uncompared else []),
            *([git_settings.warn_of_removed(self.git)] if self.git else []),
        ]

    def as_json(self) -> dict[str, Json]:
        """Return what the trial's detail stores; nothing for an agent that changed nothing."""
        detail: dict[str, Json] = {
            "protected": self.protected.as_json() if self.protected.paths else None,
            "executed_changes": list(self.executed),
            "integrity": list(self.warnings),
        }
        return {name: value for name, value in detail.items() if value}


@dataclass(frozen=True)
class Safeguards:
    """What is known of a trial's files as its agent begins."""

    protected: ProtectedFiles
    watched: WatchedFiles | None
    git: GitSettings | None
    folder: TrialFolder
    closed: dict[Path, dict[str, int]] = field(default_factory=dict)
    """Modes of folders that are open only while evalhub looks, by root."""

    @classmethod
    def after_setup(cls, task: Task, folder: TrialFolder, workspace: LocalWorkspace) -> Safeguards:
        """Run the setup without the hidden files; then keep and hash what matters, and take them away again.

        Raises `ProviderError` (kind `setup`).
        """
        protected = task.protected_files(folder)
        protected.set_aside(task.spec.setup)
        try:
            workspace.run_setup(task.spec.setup, timeout_seconds=task.timeout_seconds)
        except ProviderError as error:
            if not protected.has_set_aside:
                raise
            hint = "Hidden files are away during the setup, unless one of its commands names them."
            raise ProviderError(f"{error} {hint}", kind=error.kind) from error
        protected.put_back()
        criteria, runs_commands = task.spec.criteria, task.runs_commands
        watched = WatchedFiles.of(task.spec, workspace, TimeLeft()) if runs_commands else None
        git = GitSettings.of(workspace) if runs_commands and criteria.git_config == "clean" else None
        protected.keep()
        return cls(protected, watched, git, folder)

    def open_folders(self) -> None:
        """Open the folders that the agent closed, before anything looks into them."""
        for root in (self.folder.workspace, self.folder.scratch):
            self.closed[root] = open_folders(root)

    def after_agent(
        self, allowed: Collection[str] = (), *, stopped: Callable[[], bool] = lambda: False
    ) -> Tampering:
        """Lay protected files again and remove planted Git settings; return what was changed.

        Then folders are closed again. `allowed` are files that the scenario's reference solution changes, too.
        Raises `OSError`.
        """
        changes = self.protected.lay(self.closed.get(self.folder.workspace, {}))
        removed = tuple(self.git.clean(TimeLeft(stopped=stopped))) if self.git else ()
        changed, uncompared = (
            self.watched.find_changed(TimeLeft(stopped=stopped)) if self.watched else ([], 0)
        )
        for root, modes in self.closed.items():
            close_folders(root, modes)
        executed = tuple(path for path in changed if path not in allowed)
        return Tampering(changes, executed, uncompared, removed)

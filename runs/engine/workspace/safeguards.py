"""Keep an agent from deciding its own gates: restore protected files, remove planted Git settings, report the rest."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from evaluators.model import Json
from runs.engine.task import Task
from runs.engine.workspace import git_settings, watched_files
from runs.engine.workspace.git_settings import GitSettings
from runs.engine.workspace.protected_files import FileChanges, ProtectedFiles
from runs.engine.workspace.trial_folder import TrialFolder
from runs.engine.workspace.watched_files import WatchedFiles
from runs.engine.workspace.workspace import LocalWorkspace
from runs.errors import ProviderError

_UNCHANGED = FileChanges()


@dataclass(frozen=True)
class Tampering:
    """What the agent did to files and settings that decide its gates."""

    protected: FileChanges = _UNCHANGED
    executed: tuple[str, ...] = ()
    """Files that it changed and gates execute."""
    git: tuple[str, ...] = ()
    """Git settings that were removed."""

    @property
    def warnings(self) -> list[str]:
        """Return a sentence for each kind."""
        return [
            *filter(None, [self.protected.sentence]),
            *([watched_files.warn_of_changed(self.executed)] if self.executed else []),
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
        watched = WatchedFiles.of(task.spec, workspace) if runs_commands else None
        git = GitSettings.of(workspace) if runs_commands and criteria.git_config == "clean" else None
        protected.keep()
        return cls(protected, watched, git)

    def after_agent(self, allowed: Collection[str] = ()) -> Tampering:
        """Lay protected files again and remove planted Git settings; return what was changed.

        `allowed` are executed files that the scenario's reference solution changes, too. Raises `OSError`.
        """
        changes = self.protected.lay()
        removed = tuple(self.git.clean()) if self.git else ()
        executed = tuple(self.watched.changed(allowed)) if self.watched else ()
        return Tampering(changes, executed, removed)

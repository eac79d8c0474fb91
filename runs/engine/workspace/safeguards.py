"""Keep an agent from deciding its own gates: restore protected files, remove planted Git settings.

Changed files that gates and scripts run (`scenarios.watched_files`) are reported, not restored.
"""

from __future__ import annotations

import configparser
import hashlib
import json
import os
import posixpath
import stat
import tomllib
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from evalhub.lib.limits import LARGEST_FILE, LARGEST_RECORD
from evalhub.lib.numbers import format_count
from evaluators.model import Json
from evaluators.name_lists import list_names
from runs.engine.task import Task
from runs.engine.workspace import git_settings
from runs.engine.workspace.git_settings import GitSettings
from runs.engine.workspace.kept_files import TimeLeft
from runs.engine.workspace.protected_files import FileChanges, ProtectedFiles
from runs.engine.workspace.workspace import LocalWorkspace, TrialFolder
from runs.errors import ProviderError
from runs.sandbox.safe_paths import open_beneath, read_beneath
from runs.sandbox.safe_walk import close_folders, entries_beneath, open_folders
from scenarios.spec import ScenarioSpec
from scenarios.watched_files import PACKAGE, WatchedNames, is_test

MOST_NAMED = 20
_AT_ONCE = 1 << 20
_ABSENT = ""
_UNREAD = "?"
"""Of a file that there was no time to read."""


@dataclass
class WatchedFiles:
    """The watched files of one trial, as they were when its agent began."""

    workspace: LocalWorkspace
    names: WatchedNames | None = None
    before: dict[str, str] = field(default_factory=dict)
    """Hashes by path."""

    @classmethod
    def of(cls, spec: ScenarioSpec, workspace: LocalWorkspace, left: TimeLeft) -> WatchedFiles:
        """Return the files that a scenario's gates and scripts run, hashed as they are now.

        None are watched where the scenario says that all files are the task (`protected: []`).
        """
        if spec.criteria.protected == ():
            return cls(workspace)
        names = WatchedNames(
            spec.commands_after_agent, spec.criteria.tool, lambda path: _beginning(workspace, path)
        )
        watched = cls(workspace, names)
        watched.before = watched.hashes(left)
        return watched

    def find_changed(self, left: TimeLeft) -> tuple[list[str], int]:
        """Return the paths that the agent changed, added or removed, and how many there was no time to compare."""
        after = self.hashes(left)
        both = {
            path: (self.before.get(path, _ABSENT), after.get(path, _ABSENT)) for path in self.before | after
        }
        uncompared = [path for path, pair in both.items() if _UNREAD in pair]
        changed = [
            path
            for path, (was, now) in sorted(both.items())
            if was != now
            and path not in uncompared
            # A further test makes no other test pass.
            and not (was == _ABSENT and is_test(path))
        ]
        return changed, len(uncompared)

    def hashes(self, left: TimeLeft) -> dict[str, str]:
        """Return the hashes of the watched files that exist."""
        if self.names is None:
            return {}
        files = {
            path: stat.S_ISLNK(state.st_mode) or bool(state.st_mode & stat.S_IXUSR)
            for path, state in entries_beneath(self.workspace.path)
            if not stat.S_ISDIR(state.st_mode)
        }
        paths = self.names.find_watched(files, lambda path: _beginning(self.workspace, path, len(b"#!")))
        hashed = ((path, self._hash(path, left)) for path in sorted(paths))
        return {path: each for path, each in hashed if each != _ABSENT}

    def _hash(self, path: str, left: TimeLeft) -> str:
        """Return a file's hash, for settings only of the part that counts; empty if there is no file."""
        part = _PARTS.get(posixpath.basename(path))
        if part is not None:
            with suppress(OSError):
                content = read_beneath(self.workspace.path, path, limit=LARGEST_FILE)
                with suppress(ValueError, RecursionError, AttributeError, configparser.Error):
                    text = part(content.decode("utf-8-sig"))
                    # No such part is as good as no file.
                    return hashlib.sha256(text.encode()).hexdigest() if text else _ABSENT
        try:
            descriptor = open_beneath(self.workspace.path, path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return _ABSENT
        except OSError as error:
            return f"error {error.errno}"
        with os.fdopen(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                return _ABSENT if stat.S_ISDIR(state.st_mode) else "special"
            if state.st_size > LARGEST_RECORD:
                return f"{state.st_size} bytes at {state.st_mtime_ns}"
            digest = hashlib.sha256()
            while content := file.read(_AT_ONCE):
                if left.is_up:
                    return _UNREAD
                digest.update(content)
            return digest.hexdigest()


def warn_of_changed(changed: Sequence[str]) -> str:
    """Return a warning of changed files."""
    return (
        f"The agent changed files that gates run or name: {list_names(changed, MOST_NAMED)}. "
        "Unless they are the task, list them under 'protected'."
    )


def warn_of_uncompared(number: int) -> str:
    """Return a warning of files that there was no time to read."""
    return f"Gates run or name {format_count(number, 'file')} that there was no time to compare."


def _beginning(workspace: LocalWorkspace, path: str, size: int = LARGEST_FILE) -> bytes:
    """Return the beginning of a file; nothing if it isn't a regular one."""
    try:
        descriptor = open_beneath(workspace.path, path, os.O_RDONLY)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        return file.read(size) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""


def _of_toml(text: str) -> str:
    tools = tomllib.loads(text).get("tool", {})
    options = {name: tools[name] for name in ("pytest", "tox") if name in tools}
    return json.dumps(options, sort_keys=True, default=str) if options else ""


def _of_ini(text: str) -> str:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    return json.dumps(dict(parser["tool:pytest"])) if parser.has_section("tool:pytest") else ""


def _of_package(text: str) -> str:
    scripts = json.loads(text).get("scripts")
    return json.dumps(scripts, sort_keys=True) if scripts else ""


_PARTS: dict[str, Callable[[str], str]] = {
    "pyproject.toml": _of_toml,
    "setup.cfg": _of_ini,
    PACKAGE: _of_package,
}


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
            *([warn_of_changed(self.executed)] if self.executed else []),
            *([warn_of_uncompared(self.uncompared)] if self.uncompared else []),
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
        """Run the setup without the hidden files; then keep and hash what matters, and remove them again.

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

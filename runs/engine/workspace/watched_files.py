"""Notice which files that gates and scripts run were changed by the agent (`scenarios.watched_files`)."""

from __future__ import annotations

import configparser
import hashlib
import json
import os
import posixpath
import stat
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from evalhub.lib.limits import LARGEST_FILE, LARGEST_RECORD
from evalhub.lib.numbers import counted
from evaluators.name_lists import list_names
from runs.engine.workspace.time_left import TimeLeft
from runs.engine.workspace.workspace import LocalWorkspace
from runs.sandbox.safe_paths import open_beneath, read_beneath
from runs.sandbox.safe_walk import entries_beneath
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
    return f"Gates run or name {counted(number, 'file')} that there was no time to compare."


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

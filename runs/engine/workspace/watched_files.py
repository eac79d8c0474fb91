"""Notice which files that gates and scripts execute were changed by the agent.

What a gate only reads is the task's result and is not watched.
"""

from __future__ import annotations

import configparser
import hashlib
import json
import os
import posixpath
import stat
import sys
import tomllib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from evalhub.lib.limits import LARGEST_FILE
from evaluators.model import FileUnavailable
from evaluators.name_lists import list_names
from evaluators.tool_use.executed_files import PACKAGE, ExecutedFiles, find_executed, is_test
from runs.engine.workspace.workspace import LocalWorkspace
from runs.sandbox.safe_paths import open_beneath, read_beneath
from runs.sandbox.safe_walk import entries_beneath
from scenarios.spec import ScenarioSpec

MOST_NAMED = 20
_STANDARD_MODULES = sys.stdlib_module_names | {"sitecustomize", "usercustomize"}
_MODULE_SUFFIXES = (".py", ".pyc", ".so")
_ABSENT = ""


@dataclass
class WatchedFiles:
    """The executed files of one trial, as they were when its agent began."""

    workspace: LocalWorkspace
    executed: ExecutedFiles
    before: dict[str, str] = field(default_factory=dict)
    """Hashes by path."""

    @classmethod
    def of(cls, spec: ScenarioSpec, workspace: LocalWorkspace) -> WatchedFiles:
        """Return the files that a scenario's gates and scripts execute, hashed as they are now.

        None are watched where the scenario says that all files are the task (`protected: []`).
        """
        if spec.criteria.protected == ():
            return cls(workspace, ExecutedFiles())
        executed = find_executed(
            spec.commands_after_agent,
            lambda path: _text(workspace, path),
            fixture=workspace.inside(workspace.path),
            path=workspace.env.get("PATH", workspace.variables["PATH"]),
        )
        watched = cls(workspace, executed)
        watched.before = watched.hashes()
        return watched

    def changed(self, allowed: Collection[str] = ()) -> list[str]:
        """Return the paths that the agent changed, added or removed, except those that it is allowed to."""
        after = self.hashes()
        paths = [
            path
            for path in sorted(self.before.keys() | after.keys())
            if self.before.get(path, _ABSENT) != after.get(path, _ABSENT)
            # A further test makes no other test pass.
            and not (path not in self.before and is_test(path) and path not in self.executed.files)
        ]
        return [path for path in paths if path not in allowed]

    def hashes(self) -> dict[str, str]:
        """Return the hashes of the executed files that exist."""
        paths = {*self.executed.files, *self._modules(), *self._tests()}
        hashed = ((path, self._hash(path)) for path in paths)
        return {path: each for path, each in hashed if each != _ABSENT}

    def _modules(self) -> Iterator[str]:
        """Yield what Python would import in place of a standard module."""
        for folder in self.executed.module_folders:
            for name, is_folder in self._names(folder):
                stem, suffix = name.partition(".")[0], posixpath.splitext(name)[1]
                path = posixpath.join(folder, name)
                if stem not in _STANDARD_MODULES:
                    continue
                if is_folder:
                    yield from (posixpath.join(path, f"__init__{each}") for each in _MODULE_SUFFIXES)
                elif suffix in _MODULE_SUFFIXES:
                    yield path

    def _tests(self) -> Iterator[str]:
        """Yield pytest's tests, and each conftest.py."""
        if not self.executed.tests:
            return
        for path, state in entries_beneath(self.workspace.path):
            if not stat.S_ISDIR(state.st_mode) and self.executed.collects(path):
                yield path

    def _names(self, folder: str) -> list[tuple[str, bool]]:
        with suppress(OSError):
            descriptor = open_beneath(self.workspace.path, folder or ".", os.O_RDONLY | os.O_DIRECTORY)
            try:
                with os.scandir(descriptor) as entries:
                    return [(each.name, each.is_dir()) for each in entries]
            finally:
                os.close(descriptor)
        return []

    def _hash(self, path: str) -> str:
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
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return _ABSENT if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "special"
            return hashlib.file_digest(file, "sha256").hexdigest()


def warn_of_changed(changed: Sequence[str]) -> str:
    """Return a warning of changed files."""
    return (
        f"Gates executed files that the agent changed: {list_names(changed, MOST_NAMED)}. "
        "Unless they are the task, list them under 'protected'."
    )


def _text(workspace: LocalWorkspace, path: str) -> str | None:
    try:
        return workspace.read(path)
    except FileUnavailable:
        return None


def _of_toml(text: str) -> str:
    options = tomllib.loads(text).get("tool", {}).get("pytest")
    return json.dumps(options, sort_keys=True, default=str) if options else ""


def _of_ini(section: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(text)
        return json.dumps(dict(parser[section])) if parser.has_section(section) else ""

    return read


def _of_package(text: str) -> str:
    scripts = json.loads(text).get("scripts")
    return json.dumps(scripts, sort_keys=True) if scripts else ""


_PARTS: dict[str, Callable[[str], str]] = {
    "pyproject.toml": _of_toml,
    "tox.ini": _of_ini("pytest"),
    "setup.cfg": _of_ini("tool:pytest"),
    PACKAGE: _of_package,
}

"""Files that are not the task: kept as they are after setup, and restored when the agent has ended.

Hidden files are removed before the setup, which may commit what it finds, and restored with the protected ones.
`git status` doesn't show what evalhub writes after the agent, so a gate on a clean tree still passes.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Collection, Iterable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from evaluators.model import Json
from evaluators.tool_use.tool import Tool
from runs.errors import ProviderError
from runs.sandbox.safe_paths import FOLDER, make_folder_beneath, open_beneath, read_beneath, write_beneath
from runs.sandbox.safe_walk import entries_beneath
from scenarios.formats.agentv.file_versions import folders_above
from scenarios.globs import matches
from scenarios.guidance import is_tool_file
from scenarios.named_files import find_named, is_hidden

_SPECIAL = re.compile(r"([\\*?\[ ])")
"""Characters of a file's name that are written with a backslash in a pattern (gitignore(5))."""


def hide_from_status(workspace: Path, paths: Iterable[str]) -> None:
    """Name files in `.git/info/exclude` of the repositories that they lie in.

    A repository that can't be written is left as it is: then its status names the files.
    """
    patterns: dict[str, list[str]] = {}
    for path in sorted(paths):
        folders = folders_above(posixpath.dirname(path))
        folder = next((each for each in folders if _is_repository(workspace, each)), None)
        if folder is not None and "\n" not in path:
            patterns.setdefault(folder, []).append(
                "/" + _SPECIAL.sub(r"\\\1", posixpath.relpath(path, folder or "."))
            )
    for folder, lines in patterns.items():
        with suppress(OSError):
            _append(workspace, posixpath.join(folder, ".git/info/exclude"), lines)


def _is_repository(workspace: Path, folder: str) -> bool:
    try:
        os.close(open_beneath(workspace, posixpath.join(folder, ".git"), FOLDER, links=False))
    except OSError:
        return False
    return True


def _append(workspace: Path, file: str, lines: Sequence[str]) -> None:
    """Add lines to a file, which is made if it is missing. Raises `OSError`."""
    make_folder_beneath(workspace, posixpath.dirname(file))
    try:
        before = read_beneath(workspace, file, links=False)
    except FileNotFoundError:
        before = b""
    added = "".join(f"{line}\n" for line in lines).encode()
    write_beneath(workspace, file, before.rstrip(b"\n") + b"\n" * bool(before) + added, replace=True)


_AT_ONCE = 1 << 20
_GIT = ".git"
_WILD = frozenset("*?")


@dataclass(frozen=True)
class FileChanges:
    """What the agent did to protected and hidden files."""

    restored: tuple[str, ...] = ()
    """Changed or removed, and restored."""
    set_aside: tuple[str, ...] = ()
    """Added where a pattern matches, and removed."""

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.restored, *self.set_aside)

    @property
    def sentence(self) -> str:
        """Return what was changed, as a sentence; empty if nothing was."""
        words = [f"{path} (restored)" for path in self.restored] + [
            f"{path} (set aside)" for path in self.set_aside
        ]
        return f"Changed by the agent: {', '.join(words)}." if words else ""

    def as_json(self) -> dict[str, Json]:
        """Return both lists, for the trial's detail."""
        return {"restored": list(self.restored), "set_aside": list(self.set_aside)}


class ProtectedFiles:
    """The protected and hidden files of one trial, kept in a folder that no command sees."""

    def __init__(
        self,
        workspace: Path,
        storage: Path,
        *,
        protected: Sequence[str],
        hidden: Sequence[str],
        tool: Tool | None,
        guidance: Collection[str],
    ) -> None:
        self._workspace, self._kept = workspace, storage
        self._patterns = (*protected, *hidden)
        self._hidden = tuple(hidden)
        self._tool, self._guidance = tool, frozenset(guidance)
        self._files: dict[str, int] = {}
        """Permissions of the kept files by path."""
        self._aside: list[str] = []
        """Hidden files that are away during the setup."""
        self._folders: dict[str, int] = {}
        """Modes of the folders of protected files."""
        self._moved = 0

    def set_aside(self, setup: Sequence[str]) -> None:
        """Remove hidden files before the setup, except those that its commands name. Raises `ProviderError`.

        What a setup commits, the agent reads in the repository's history.
        """
        if not (self._hidden and setup):
            return
        self._kept.mkdir()
        files = [path for path, state in entries_beneath(self._workspace) if stat.S_ISREG(state.st_mode)]
        hidden = [path for path in files if is_hidden(path, self._hidden) and self._is_ours(path)]
        self._aside = sorted({*hidden} - find_named(hidden, setup))
        for number, path in enumerate(self._aside):
            (self._workspace / path).rename(self._kept / f"aside-{number}")

    @property
    def has_set_aside(self) -> bool:
        """Whether hidden files are away during the setup."""
        return bool(self._aside)

    def keep(self) -> None:
        """Copy the files as they are now, and remove the hidden ones. Raises `ProviderError` (kind `setup`)."""
        if not self._patterns:
            return
        self._kept.mkdir(exist_ok=True)
        try:
            for path, state in list(entries_beneath(self._workspace)):
                if stat.S_ISREG(state.st_mode) and self._is_ours(path):
                    self._copy(path, len(self._files))
                    self._files[path] = stat.S_IMODE(state.st_mode)
                    if is_hidden(path, self._hidden):
                        _remove(self._workspace, path)
                    else:
                        for folder in map(str, PurePosixPath(path).parents):
                            if folder not in self._folders:
                                self._folders[folder] = stat.S_IMODE(
                                    (self._workspace / folder).lstat().st_mode
                                )
        except OSError as error:
            raise _cannot_keep(error) from error

    def put_back(self) -> None:
        """Put back the files removed for the setup, unless the setup wrote one there. Raises `ProviderError`."""
        try:
            for number, path in enumerate(self._aside):
                *folders, name = path.split("/")
                parent = _real_folder(self._workspace, folders)
                try:
                    os.link(self._kept / f"aside-{number}", name, dst_dir_fd=parent)
                except FileExistsError:
                    pass
                finally:
                    os.close(parent)
        except OSError as error:
            raise _cannot_keep(error) from error

    def lay(self, closed: MutableMapping[str, int]) -> FileChanges:
        """Lay the files again as they were kept, and take away what was added beside them. Raises `OSError`.

        `closed` are modes of folders that are open only now; those of protected files get the modes that they had.
        """
        if not self._patterns:
            return FileChanges()
        added = [
            path
            for path, state in list(entries_beneath(self._workspace))
            if not stat.S_ISDIR(state.st_mode) and path not in self._files and self._is_ours(path)
        ]
        for path in added:
            _remove(self._workspace, path)
        restored = [
            f"{folder}/" for folder, mode in self._folders.items() if closed.get(folder, mode) != mode
        ]
        closed.update((folder, mode) for folder, mode in self._folders.items() if folder in closed)
        for number, (path, mode) in enumerate(self._files.items()):
            if self._is_as_kept(path, number, mode):
                continue
            self._restore(path, number, mode)
            if not is_hidden(path, self._hidden):
                restored.append(path)
        hide_from_status(self._workspace, [path for path in self._files if is_hidden(path, self._hidden)])
        return FileChanges(tuple(sorted(restored)), tuple(sorted(added)))

    def _is_ours(self, path: str) -> bool:
        """Return whether a pattern matches a path; guidance, the tool and git's own files only by their names."""
        patterns = [pattern for pattern in self._patterns if matches(path, pattern)]
        if path.split("/")[0] == _GIT:
            return any(pattern.startswith(_GIT) for pattern in patterns)
        if path in self._guidance or is_tool_file(path, self._tool):
            return any(_WILD.isdisjoint(pattern) for pattern in patterns)
        return bool(patterns)

    def _copy(self, path: str, number: int) -> None:
        source = open_beneath(self._workspace, path, os.O_RDONLY, links=False)
        try:
            with (self._kept / str(number)).open("wb") as target:
                while content := os.read(source, _AT_ONCE):
                    target.write(content)
        finally:
            os.close(source)

    def _is_as_kept(self, path: str, number: int, mode: int) -> bool:
        try:
            descriptor = open_beneath(self._workspace, path, os.O_RDONLY, links=False)
        except OSError:
            return False
        try:
            state, copy = os.fstat(descriptor), self._kept / str(number)
            if not stat.S_ISREG(state.st_mode) or stat.S_IMODE(state.st_mode) != mode:
                return False
            if state.st_size != copy.stat().st_size:
                return False
            with copy.open("rb") as before:
                while content := os.read(descriptor, _AT_ONCE):
                    if content != before.read(len(content)):
                        return False
            return True
        finally:
            os.close(descriptor)

    def _restore(self, path: str, number: int, mode: int) -> None:
        *folders, name = path.split("/")
        parent = _real_folder(self._workspace, folders)
        try:
            # Take away what has a file's name: a folder goes beside the kept files, with what is in it.
            with suppress(FileNotFoundError):
                if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                    self._moved += 1
                    os.rename(name, self._kept / f"folder-{self._moved}", src_dir_fd=parent)
                else:
                    os.unlink(name, dir_fd=parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            target = os.open(name, flags, 0o600, dir_fd=parent)
            with os.fdopen(target, "wb") as file, (self._kept / str(number)).open("rb") as before:
                while content := before.read(_AT_ONCE):
                    file.write(content)
                os.fchmod(file.fileno(), mode)
        finally:
            os.close(parent)


def _cannot_keep(error: OSError) -> ProviderError:
    return ProviderError(
        f"A protected file can't be kept: {error.filename or ''}: {error.strerror}. Correct `protected` or "
        "`hidden` in the scenario.",
        kind="setup",
    )


def _remove(workspace: Path, path: str) -> None:
    folder, _, name = path.rpartition("/")
    parent = open_beneath(workspace, folder or ".", FOLDER, links=False)
    try:
        os.unlink(name, dir_fd=parent)
    finally:
        os.close(parent)


def _real_folder(workspace: Path, names: Sequence[str]) -> int:
    """Return a folder's descriptor; links and files in its way are replaced by folders."""
    descriptor = open_beneath(workspace, ".", FOLDER)
    for name in names:
        try:
            state = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if not stat.S_ISDIR(state.st_mode):
                os.unlink(name, dir_fd=descriptor)
                os.mkdir(name, 0o755, dir_fd=descriptor)
        except FileNotFoundError:
            os.mkdir(name, 0o755, dir_fd=descriptor)
        following = os.open(name, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = following
    return descriptor

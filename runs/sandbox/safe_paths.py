"""Open files that a trial may have changed: never outside its directory, never blocking.

Linux resolves the whole path beneath a directory (openat2). Elsewhere each step is opened from the previous one, and links are read, not followed.
Only regular files are read: a FIFO would block and a device never ends.

Decide which paths targets may name: those that the operator lists, never evalhub's own data.
"""

from __future__ import annotations

import ctypes
import errno
import os
import posixpath
import stat
import struct
import sys
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from runs.errors import ProviderError

READ_LIMIT = 10 << 20
MOST_LINKS = 40

_OPENAT2 = 437
_BENEATH, _NO_MAGICLINKS, _NO_SYMLINKS = 0x08, 0x02, 0x04
_libc = ctypes.CDLL(None, use_errno=True)
_O_PATH = getattr(os, "O_PATH", 0)
FOLDER = os.O_RDONLY | os.O_DIRECTORY


class LeadsOutside(OSError):
    """A path that leaves the directory: absolute, by `..` or by a link."""


def read_beneath(root: Path, path: str, *, limit: int = READ_LIMIT, links: bool = True) -> bytes:
    """Return the content of a regular file.

    Raises `LeadsOutside`, `FileNotFoundError`, or `OSError`
    with a message if the file is not regular or is larger than `limit` bytes.
    """
    descriptor = open_beneath(root, path, os.O_RDONLY, links=links)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        if state.st_size > limit:
            raise OSError(errno.EFBIG, f"{state.st_size:,} bytes, limit {limit:,}", path)
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(limit)
    finally:
        os.close(descriptor)


def write_beneath(root: Path, path: str, content: bytes, *, replace: bool = False) -> None:
    """Write a new file. Raises `FileExistsError` if the name is taken, and `OSError`.

    `replace` removes a file, link or FIFO of that name first; what it led to is left alone.
    """
    if replace:
        remove_beneath(root, path)
    with os.fdopen(create_beneath(root, path), "wb") as file:
        file.write(content)


def write_next_to_workspace(folder: Path, name: str, content: bytes, what: str) -> None:
    """Write a file for a trial's program, in place of one of that name; `what` begins the sentence if it fails.

    Raises `ProviderError` (kind `setup`).
    """
    try:
        write_beneath(folder, name, content, replace=True)
    except OSError as error:
        raise ProviderError(
            f"{what} can't be written to {name} beside the workspace: {error.strerror}. "
            "Let the setup commands leave that name free.",
            kind="setup",
        ) from error


def create_beneath(root: Path, path: str) -> int:
    """Create a file and return its descriptor for writing. Raises `OSError`."""
    folder, name = posixpath.split(path)
    parent = open_beneath(root, folder or ".", FOLDER)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o644, dir_fd=parent)
    finally:
        os.close(parent)


def make_folder_beneath(root: Path, path: str) -> None:
    """Create a folder and its parents; keep existing ones. Raises `OSError`."""
    folder = "."
    for name in path.split("/"):
        parent = open_beneath(root, folder, FOLDER)
        try:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=parent)
        finally:
            os.close(parent)
        folder = posixpath.join(folder, name)
    os.close(open_beneath(root, folder, FOLDER))


def remove_beneath(root: Path, path: str) -> None:
    """Remove a file or link if it exists. Raises `OSError`."""
    folder, name = posixpath.split(path)
    parent = open_beneath(root, folder or ".", FOLDER)
    try:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)
    finally:
        os.close(parent)


def exists_beneath(root: Path, path: str) -> bool:
    """Return whether a path exists. Raises `LeadsOutside`."""
    try:
        os.close(open_beneath(root, path, _O_PATH))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def open_beneath(root: Path, path: str, flags: int, *, links: bool = True) -> int:
    """Open a relative path beneath a directory and return the descriptor. Raises `OSError`.

    Without `links` any link in the path is an error; with them, links that stay beneath are followed.
    """
    if "\0" in path:
        raise FileNotFoundError(errno.ENOENT, "a path can't contain NUL", path)
    if sys.platform == "linux":
        with suppress(NotImplementedError):
            return _openat2(root, path, flags, links=links)
    return open_by_steps(root, path, flags, links=links)


def _open_root(root: Path) -> int:
    return os.open(root, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC)


def _openat2(root: Path, path: str, flags: int, *, links: bool) -> int:
    directory = _open_root(root)
    try:
        resolve = _BENEATH | _NO_MAGICLINKS | (0 if links else _NO_SYMLINKS)
        how = struct.pack("QQQ", _full(flags), 0, resolve)
        buffer = ctypes.create_string_buffer(how, len(how))
        name = os.fsencode(path or ".")
        # The kernel gives up on `..` while anything on the machine is renamed; openat2(2) says to try again.
        for _ in range(100):
            descriptor = int(_libc.syscall(_OPENAT2, directory, name, buffer, len(how)))
            if descriptor >= 0:
                return descriptor
            if ctypes.get_errno() != errno.EAGAIN:
                break
        raise _error(ctypes.get_errno(), path)
    finally:
        os.close(directory)


def _full(flags: int) -> int:
    """Add the flags that prevent blocking and terminals; a bare path (O_PATH) accepts neither."""
    careful = 0 if flags == _O_PATH != 0 else os.O_NOCTTY | os.O_NONBLOCK
    return flags | os.O_CLOEXEC | careful


def _error(number: int, path: str) -> Exception:
    if number in (errno.ENOSYS, errno.EPERM):
        # An old kernel, or a container whose seccomp profile does not know the call.
        return NotImplementedError("openat2")
    if number == errno.EXDEV:
        return _leads_outside(path)
    return OSError(number, os.strerror(number), path)


def _leads_outside(path: str) -> LeadsOutside:
    return LeadsOutside(errno.EXDEV, "it leads outside the directory", path)


def open_by_steps(root: Path, path: str, flags: int, *, links: bool = True) -> int:
    """Do what `open_beneath` does, without openat2."""
    if path.startswith("/"):
        raise _leads_outside(path)
    folders = [_open_root(root)]
    left, followed = deque(_steps(path)), 0
    try:
        while left:
            name = left.popleft()
            if name == "..":
                if len(folders) == 1:
                    raise _leads_outside(path)
                os.close(folders.pop())
            elif (target := _link(name, folders[-1])) is not None:
                followed += 1
                if not links or followed > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                if target.startswith("/"):
                    raise _leads_outside(path)
                left.extendleft(reversed(_steps(target)))
            elif left:
                folders.append(_next(name, FOLDER, folders, path))
            else:
                return _next(name, _full(flags), folders, path)
        return os.open(".", _full(flags), dir_fd=folders[-1])
    finally:
        for folder in folders:
            os.close(folder)


def _next(name: str, flags: int, folders: list[int], path: str) -> int:
    # Longer paths are rejected where each step needs its own descriptor.
    if len(folders) > 256:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
    return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folders[-1])


def _steps(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _link(name: str, folder: int) -> str | None:
    """Return a link's target, None if the path is missing or not a link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


class Use(StrEnum):
    """Verbs for sentences."""

    READ = "read"
    WORK = "work in"
    WRITE = "write to"
    RUN = "run"
    SHOW = "show its commands"


SYSTEM_PROGRAMS = (Path("/usr"), Path("/bin"), Path("/sbin"))
REMEDY = "Give a path beneath one that EVALHUB_TARGET_ROOTS lists, or list it there"


class PathRefused(ProviderError):
    """A target may not use a path; the message is a sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="configuration")


@dataclass(frozen=True)
class AllowedPath:
    """An allowed path: its root and the path beneath, with links resolved."""

    root: Path
    beneath: str

    @property
    def path(self) -> Path:
        """Return the whole path."""
        return self.root / self.beneath

    def read(self, *, limit: int) -> bytes:
        """Return a file's content. Raises `OSError`."""
        return read_beneath(self.root, self.beneath, limit=limit, links=False)

    def create(self, name: str) -> int:
        """Create a file in this folder, and the folder if missing; return the descriptor. Raises `OSError`."""
        if self.beneath != ".":
            make_folder_beneath(self.root, self.beneath)
        return create_beneath(self.root, f"{self.beneath}/{name}")


@dataclass(frozen=True)
class TargetRoots:
    """The folders in which targets may name paths. Default: only system programs."""

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    programs: tuple[Path, ...] = SYSTEM_PROGRAMS
    never: tuple[Path, ...] = ()
    """evalhub's own folders and files, always refused."""

    @classmethod
    def of(cls, words: Iterable[str], *, path: str = "", never: Iterable[Path] = ()) -> TargetRoots:
        """Parse EVALHUB_TARGET_ROOTS and a PATH. Raises `ValueError` with a sentence."""
        readable, writable = [], []
        for word in words:
            name = word.removesuffix(":rw")
            if not Path(name).is_absolute():
                raise ValueError(
                    f"EVALHUB_TARGET_ROOTS: '{word}' is not an absolute path. Write /srv/recordings, "
                    "or /srv/logs:rw where targets may write."
                )
            readable.append(_real(Path(name)))
            writable += [_real(Path(name))] if word.endswith(":rw") else []
        programs = [Path(each) for each in path.split(os.pathsep) if each.startswith("/")]
        return cls(tuple(readable), tuple(writable), (*SYSTEM_PROGRAMS, *programs), tuple(map(_real, never)))

    def place(self, path: str, use: Use, *, base: str = "") -> AllowedPath:
        """Resolve a path and its links. Relative paths start from `base`, the targets file's folder, and stay beneath it. Paths beneath `base`
        may also be read by absolute path.

        Raises `PathRefused`.
        """
        asked = Path(path).expanduser() if use is Use.RUN else Path(path)
        real = _real(asked)
        if not asked.is_absolute() or (base and real.is_relative_to(_real(Path(base)))):
            return self._beneath_base(str(asked), use, base)
        self._refuse_own(path, real, use)
        if use is Use.SHOW and _real(Path.home()).is_relative_to(real):
            raise PathRefused(
                f"'{path}' is the worker's home or contains it, with its keys. Move the program to a folder of its own."
            )
        for root in self._roots(use):
            if real.is_relative_to(root):
                return AllowedPath(root, str(real.relative_to(root)))
        if use is Use.RUN and Path(os.path.normpath(asked)).parent in self.programs:
            # A link on PATH, such as those of version managers.
            return AllowedPath(real.parent, real.name)
        raise PathRefused(f"A target may not {use} '{path}' on this worker. {_remedy(use)}.")

    def may_write(self, path: Path) -> bool:
        """Return whether commands may write to their working folder."""
        return any(_real(path).is_relative_to(root) for root in self.writable)

    def _beneath_base(self, path: str, use: Use, base: str) -> AllowedPath:
        if not base:
            raise PathRefused(f"'{path}' has no starting folder. Give an absolute path.")
        root = _real(Path(base))
        real = _real(root / path)
        if not real.is_relative_to(root):
            raise PathRefused(
                f"'{path}' leads outside its targets file's folder. Use a path inside it, or an absolute one."
            )
        self._refuse_own(path, real, use)
        if use is Use.WRITE and not self.may_write(real):
            raise PathRefused(f"A target may not {use} '{path}' on this worker. {_remedy(use)}.")
        return AllowedPath(root, str(real.relative_to(root)))

    def _refuse_own(self, path: str, real: Path, use: Use) -> None:
        shown = use in (Use.WORK, Use.WRITE, Use.SHOW)
        for private in self.never:
            if real.is_relative_to(private) or (shown and private.is_relative_to(real)):
                raise PathRefused(
                    f"'{path}' belongs to evalhub's own data; targets can't {use} it. Use another path."
                )

    def _roots(self, use: Use) -> tuple[Path, ...]:
        if use is Use.WRITE:
            return self.writable
        return (*self.readable, *map(_real, self.programs)) if use is Use.RUN else self.readable


def refuse_climbing(path: str) -> None:
    """Raise `PathRefused` if a relative path leads outside its starting folder."""
    climbs = os.path.normpath(path)
    if climbs == ".." or climbs.startswith("../"):
        raise PathRefused(f"'{path}' leads outside its starting folder. Use a path inside it.")


def _remedy(use: Use) -> str:
    return f"{REMEDY} with ':rw'" if use is Use.WRITE else REMEDY


def _real(path: Path) -> Path:
    """Return a path with links resolved; circular links stay and are never opened."""
    return Path(os.path.realpath(path))

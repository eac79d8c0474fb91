"""Open files that a trial may have changed: never outside its directory, never blocking.

Linux resolves the whole path beneath a directory (openat2). Elsewhere each step is opened from the previous one,
and links are read, not followed. Only regular files are read: a FIFO would block and a device never ends.
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
from contextlib import suppress
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

"""Opens files that an agent may have made, without ever being led out of their directory.

Linux resolves the whole path beneath a directory (openat2); elsewhere the resolved path is compared. What
is opened is checked to be a regular file: a fifo would block, a device has no end.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from contextlib import suppress
from pathlib import Path

READ_LIMIT = 10 << 20

_OPENAT2 = 437
_BENEATH, _NO_MAGICLINKS = 0x08, 0x02
_libc = ctypes.CDLL(None, use_errno=True)
_O_PATH = getattr(os, "O_PATH", 0)


class LeadsOutside(OSError):
    """A path that leaves the directory: absolute, by `..` or by a link."""


def read_beneath(root: Path, path: str, *, limit: int = READ_LIMIT) -> bytes:
    """Return the content of a regular file.

    Raises `LeadsOutside`, `FileNotFoundError`, or `OSError` with a message for what is no regular file or larger
    than `limit` bytes.
    """
    descriptor = open_beneath(root, path, os.O_RDONLY)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        if state.st_size > limit:
            raise OSError(errno.EFBIG, f"it has {state.st_size:,} bytes; at most {limit:,} are read", path)
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(limit)
    finally:
        os.close(descriptor)


def exists_beneath(root: Path, path: str) -> bool:
    """Whether there is anything at a path. Raises `LeadsOutside`."""
    try:
        os.close(open_beneath(root, path, _O_PATH))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def open_beneath(root: Path, path: str, flags: int) -> int:
    """Return a descriptor of what a relative path means beneath a directory. Raises `OSError`."""
    if "\0" in path:
        raise FileNotFoundError(errno.ENOENT, "a path holds no NUL", path)
    if sys.platform == "linux":
        with suppress(NotImplementedError):
            return _openat2(root, path, flags)
    return _open_resolved(root, path, flags)


def _openat2(root: Path, path: str, flags: int) -> int:
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        how = struct.pack("QQQ", _full(flags), 0, _BENEATH | _NO_MAGICLINKS)
        buffer = ctypes.create_string_buffer(how, len(how))
        found = int(_libc.syscall(_OPENAT2, directory, os.fsencode(path or "."), buffer, len(how)))
        if found >= 0:
            return found
        raise _error(ctypes.get_errno(), path)
    finally:
        os.close(directory)


def _full(flags: int) -> int:
    """Opening must neither wait nor hand out a terminal; a bare path opens nothing and takes no such flags."""
    careful = 0 if flags == _O_PATH != 0 else os.O_NOCTTY | os.O_NONBLOCK
    return flags | os.O_CLOEXEC | careful


def _error(number: int, path: str) -> Exception:
    if number in (errno.ENOSYS, errno.EPERM):
        # An old kernel, or a container whose seccomp profile does not know the call.
        return NotImplementedError("openat2")
    if number == errno.EXDEV:
        return LeadsOutside(number, "it leads out of the directory", path)
    return OSError(number, os.strerror(number), path)


def _open_resolved(root: Path, path: str, flags: int) -> int:
    base = root.resolve()
    target = (base / path).resolve()
    if Path(path).is_absolute() or not target.is_relative_to(base):
        raise LeadsOutside(errno.EXDEV, "it leads out of the directory", path)
    return os.open(target, _full(flags))

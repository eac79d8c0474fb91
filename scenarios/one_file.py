"""One file that somebody named, read whole."""

from __future__ import annotations

import errno
from pathlib import Path

from scenarios.bundle_limits import MAX_FILE_BYTES


def read_whole(path: Path, *, most: int = MAX_FILE_BYTES) -> bytes:
    """Return a file's content, at most so many bytes: a device has no end and would take all memory.

    Raises OSError, also for a file that is larger.
    """
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes", str(path))
    return content

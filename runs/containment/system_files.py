"""What commands see of /etc, gathered in one folder.

Mounts of all sandboxes wait for one another in the kernel, and each name of /etc by itself would be two of them.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

from runs.containment.bubblewrap import ETC

KEPT_SECONDS = 86_400.0
"""For how long a folder whose system has changed since is left to the sandboxes that have it."""
KEYS = "private"
"""The folder of them below /etc/ssl and /etc/pki, which nobody is shown."""
_making = Lock()


def gathered(root: Path, names: tuple[str, ...] = ETC) -> Path | None:
    """Return the folder below `root` that stands for /etc, made where there is none as the system is now.

    Files of the system that change, such as the resolver's, make another folder. A file that is edited in a folder
    of /etc, and not replaced, is seen by the next process. None where nothing can be written below `root`.
    """
    folder = root / _state(names)
    try:
        if not folder.is_dir():
            # One lane makes it, and the others wait, rather than all of them at once.
            with _making:
                return folder if folder.is_dir() else _made(folder, names)
        return folder
    except OSError:
        return None


def _state(names: tuple[str, ...]) -> str:
    """Return a name for what the files and folders are now: by their times, which are quick to ask for."""
    digest = hashlib.sha256()
    for path in (*names, *_folders(names)):
        try:
            found = os.stat(path)  # noqa: PTH116  # for every command: a path object takes as long as the question
        except OSError:
            continue
        digest.update(f"{path}\0{found.st_mtime_ns}\0{found.st_size}\0{found.st_ino}\n".encode())
    return digest.hexdigest()[:32]


@cache
def _folders(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(folder for name in names for folder, _, _ in os.walk(name))


def _made(folder: Path, names: tuple[str, ...]) -> Path:
    """Make the folder beside its place first: another process may be making the same one."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in _outlived(folder.parent):
        shutil.rmtree(old, ignore_errors=True)
    beside = folder.with_name(f".{secrets.token_hex(8)}")
    beside.mkdir()
    for name in names:
        _copy(name, f"{beside}/{Path(name).name}")
    try:
        beside.rename(folder)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        if not folder.is_dir():
            raise
    return folder


def _outlived(root: Path) -> Iterator[Path]:
    for folder in root.iterdir():
        # Another process may have put it in its place meanwhile.
        with suppress(FileNotFoundError):
            if time.time() - folder.stat().st_mtime > KEPT_SECONDS:
                yield folder


def _copy(source: str, target: str) -> None:
    """Copy what this user may read, but no keys; links within a folder stay links."""
    if os.path.isdir(source) and os.access(source, os.R_OK | os.X_OK):  # noqa: PTH112  # hundreds of names
        os.mkdir(target)  # noqa: PTH102
        for entry in os.scandir(source):
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), f"{target}/{entry.name}")  # noqa: PTH115, PTH211
            elif entry.name != KEYS:
                _copy(entry.path, f"{target}/{entry.name}")
    elif os.path.isfile(source) and os.access(source, os.R_OK):  # noqa: PTH113
        shutil.copyfile(source, target)

"""Build the /etc that commands see in one folder.

The kernel serialises mounts, and each separate entry of /etc would take two.
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

from runs.sandbox.bubblewrap import ETC

KEPT_SECONDS = 86_400.0
"""Seconds that an outdated folder is kept because running sandboxes may use it."""
KEYS = "private"
"""Folder of private keys below /etc/ssl and /etc/pki, never shown."""
_making = Lock()


def system_folder(root: Path, names: tuple[str, ...] = ETC) -> Path | None:
    """Return the folder below `root` to mount as /etc, created from the system's current state.

    Files of the system that change, such as the resolver's, make another folder. A file that is edited in a folder
    of /etc, and not replaced, is seen by the next process. None where nothing can be written below `root`.
    """
    # A name for the current state, from modification times.
    digest = hashlib.sha256()
    for path in (*names, *_folders(names)):
        try:
            state = os.stat(path)  # noqa: PTH116  # for every command: a path object takes as long as the question
        except OSError:
            continue
        digest.update(f"{path}\0{state.st_mtime_ns}\0{state.st_size}\0{state.st_ino}\n".encode())
    folder = root / digest.hexdigest()[:32]
    try:
        if not folder.is_dir():
            # One lane builds it while the others wait.
            with _making:
                return folder if folder.is_dir() else _build(folder, names)
        return folder
    except OSError:
        return None


@cache
def _folders(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(folder for name in names for folder, _, _ in os.walk(name))


def _build(folder: Path, names: tuple[str, ...]) -> Path:
    """Build the folder under a temporary name: another process may be building the same one."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in _find_outlived(folder.parent):
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


def _find_outlived(root: Path) -> Iterator[Path]:
    for folder in root.iterdir():
        # Another process may have renamed its own first.
        with suppress(FileNotFoundError):
            if time.time() - folder.stat().st_mtime > KEPT_SECONDS:
                yield folder


def _copy(source: str, target: str) -> None:
    """Copy what this user may read except keys; keep links within a folder."""
    if os.path.isdir(source) and os.access(source, os.R_OK | os.X_OK):  # noqa: PTH112  # hundreds of names
        os.mkdir(target)  # noqa: PTH102
        for entry in os.scandir(source):
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), f"{target}/{entry.name}")  # noqa: PTH115, PTH211
            elif entry.name != KEYS:
                _copy(entry.path, f"{target}/{entry.name}")
    elif os.path.isfile(source) and os.access(source, os.R_OK):  # noqa: PTH113
        shutil.copyfile(source, target)

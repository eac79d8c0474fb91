"""Walk, measure and remove folders that a trial may have changed, without following links.

Each folder is opened by its path beneath the root, so one that is swapped for a link is skipped, and
only one is open at a time at any depth.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, count, islice
from pathlib import Path

from runs.sandbox.safe_paths import FOLDER, open_beneath

MOST_ENTRIES = 200_000
"""Number of entries after which a walk stops."""

_CAREFUL = os.O_NOFOLLOW | os.O_CLOEXEC
_O_PATH = getattr(os, "O_PATH", 0)


def entries_beneath(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path and `lstat` of each entry beneath a folder."""
    seen, waiting = 0, [""]
    while waiting and seen < MOST_ENTRIES:
        folder = waiting.pop()
        for name, state in _list_folder(root, folder, MOST_ENTRIES - seen):
            seen += 1
            path = f"{folder}/{name}" if folder else name
            if stat.S_ISDIR(state.st_mode):
                waiting.append(path)
            yield path, state


def files_beneath(root: Path, *, most: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield at most this many regular files beneath a folder."""
    files = (each for each in entries_beneath(root) if stat.S_ISREG(each[1].st_mode))
    return islice(files, most)


def is_empty(root: Path) -> bool:
    """Return whether a folder is empty."""
    return not _list_folder(root, "", 1)


def disk_usage(root: Path, *, enough: int) -> int:
    """Return a folder's size on disk in bytes; stop counting past `enough`.

    Too many entries, or a folder too deep to open, count as more than `enough`.
    """
    total = 0
    for number, (path, state) in enumerate(entries_beneath(root), 1):
        total += state.st_blocks * 512
        if total > enough:
            break
        # Bytes, with the final NUL, that the kernel accepts as a path (PATH_MAX).
        too_deep = stat.S_ISDIR(state.st_mode) and len(os.fsencode(path)) >= 4096
        if too_deep or number == MOST_ENTRIES:
            return enough + 1
    return total


def remove_tree(directory: Path, *folders: Path) -> None:
    """Remove a directory tree, read-only parts included, if it exists.

    `folders` are often empty: one call then removes each, instead of fifteen.
    Raises `OSError`.
    """
    try:
        for folder in folders:
            folder.rmdir()
        directory.rmdir()
    except OSError:
        try:
            shutil.rmtree(directory)
        except (OSError, RecursionError):
            with suppress(FileNotFoundError):
                _remove_flat(directory)


def open_folders(root: Path) -> dict[str, int]:
    """Let the owner read and write a folder and all beneath it; return the former mode of each that was closed.

    The folder itself is ".". Whoever made a folder owns it: an agent may have closed it to hide what is in it.
    """
    closed: dict[str, int] = {}
    # A folder is listed after it was yielded.
    for path, state in chain([(".", root.lstat())], entries_beneath(root)):
        mode = stat.S_IMODE(state.st_mode)
        if stat.S_ISDIR(state.st_mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
            with suppress(OSError):
                _set_mode(root, path, mode | stat.S_IRWXU)
                closed[path] = mode
    return closed


def close_folders(root: Path, modes: Mapping[str, int]) -> None:
    """Give folders beneath a folder these modes, those within others first; skip what has become something else."""
    for path, mode in reversed([*modes.items()]):
        with suppress(OSError):
            _set_mode(root, path, mode)


def _set_mode(root: Path, path: str, mode: int) -> None:
    folder, _, name = path.rpartition("/")
    parent = os.open(root.parent, FOLDER | os.O_CLOEXEC) if path == "." else None
    if parent is None:
        parent = open_beneath(root, folder or ".", FOLDER, links=False)
    try:
        _open_up(root.name if path == "." else name, parent, mode)
    finally:
        os.close(parent)


@contextmanager
def temporary_folders(prefix: str) -> Iterator[tuple[Path, Path]]:
    """Create a workspace and a scratch directory for one command and remove them at exit."""
    base = Path(tempfile.mkdtemp(prefix=prefix))
    workspace, scratch = base / "workspace", base / "scratch"
    try:
        workspace.mkdir()
        scratch.mkdir()
        yield workspace, scratch
    finally:
        remove_tree(base)


def _list_folder(root: Path, folder: str, most: int) -> list[tuple[str, os.stat_result]]:
    try:
        descriptor = open_beneath(root, folder or ".", FOLDER, links=False)
    except OSError:  # not readable, gone, or now a link
        return []
    try:
        with os.scandir(descriptor) as entries:
            names = sorted(entry.name for entry in islice(entries, most))
        return list(_states(descriptor, names))
    finally:
        os.close(descriptor)


def _states(folder: int, names: list[str]) -> Iterator[tuple[str, os.stat_result]]:
    for name in names:
        with suppress(OSError):  # gone since it was listed
            yield name, os.stat(name, dir_fd=folder, follow_symlinks=False)


def _remove_flat(directory: Path) -> None:
    """Remove a tree that is unreadable or too deep to recurse: move every folder to its top first."""
    parent = os.open(directory.parent, FOLDER | os.O_CLOEXEC)
    try:
        _open_up(directory.name, parent)
        root = os.open(directory.name, FOLDER | _CAREFUL, dir_fd=parent)
    finally:
        os.close(parent)
    try:
        fresh = (f".removed-{secrets.token_hex(8)}-{number}" for number in count())
        while names := os.listdir(root):  # noqa: PTH208  # a descriptor, not a path
            for name in names:
                if not _unlink(name, root):
                    _empty(name, root, fresh)
                    os.rmdir(name, dir_fd=root)
    finally:
        os.close(root)
    directory.rmdir()


def _empty(name: str, root: int, fresh: Iterator[str]) -> None:
    _open_up(name, root)
    folder = os.open(name, FOLDER | _CAREFUL, dir_fd=root)
    try:
        for child in os.listdir(folder):  # noqa: PTH208
            if not _unlink(child, folder):
                _open_up(child, folder)
                os.rename(child, next(fresh), src_dir_fd=folder, dst_dir_fd=root)
    finally:
        os.close(folder)


def _unlink(name: str, folder: int) -> bool:
    """Remove an entry that is not a folder; return False for a folder."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return True
    except (IsADirectoryError, PermissionError):
        return False
    return True


def _open_up(name: str, folder: int, mode: int = stat.S_IRWXU) -> None:
    """Give a folder this mode, but not the target of a link in its place. Raises `OSError`."""
    if not _O_PATH:
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    descriptor = os.open(name, _O_PATH | os.O_DIRECTORY | _CAREFUL, dir_fd=folder)
    try:
        # Use the kernel's link to the descriptor: O_PATH doesn't support fchmod.
        Path(f"/proc/self/fd/{descriptor}").chmod(mode)
    finally:
        os.close(descriptor)

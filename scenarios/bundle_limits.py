"""Check the size and the paths of bundles."""

from __future__ import annotations

import errno
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scenarios.formats.problems import Problem, ScenarioFileError

MAX_ARCHIVE_BYTES = 50 * 1024 * 1024
MAX_MEMBERS = 5_000
MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_TOTAL_BYTES = 100 * 1024 * 1024
MAX_PATH = 400

_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class Member:
    """One regular file of a folder or archive."""

    path: str
    content: bytes
    executable: bool = False


def bundle_error(archive: str, member: str, what: str, fix: str, id: str) -> ScenarioFileError:
    """Return the error for a rejected bundle."""
    shown = member.encode("utf-8", "backslashreplace").decode()
    return ScenarioFileError([Problem(file=archive, line=1, where=shown, what=what, fix=fix, id=id)])


def collect(archive: str, members: Iterable[Member]) -> list[Member]:
    """Return the relevant members, sorted. Raises `ScenarioFileError` at the first over a limit."""
    by_path: dict[str, Member] = {}
    total = 0
    for member in members:
        if is_litter(member.path):
            continue
        check_path(archive, member.path)
        total += len(member.content)
        if len(member.content) > MAX_FILE_BYTES:
            raise too_large_file(archive, member.path)
        check_total(archive, size=total, count=len(by_path) + 1)
        if member.path.casefold() in by_path:
            what = "Two files have this path, or paths that differ only in case."
            raise bundle_error(archive, member.path, what, "Rename one of them.", "bundle/same-path")
        by_path[member.path.casefold()] = member
    _check_folders(archive, by_path)
    return sorted(by_path.values(), key=lambda member: member.path)


def is_litter(path: str) -> bool:
    """Return whether a path belongs to a file manager or version control."""
    return posixpath.basename(path) in {".DS_Store", "Thumbs.db"} or not {"__MACOSX", ".git"}.isdisjoint(
        path.split("/")[:-1]
    )


def check_path(archive: str, path: str) -> None:
    """Reject a path that leads outside or is not portable."""
    fix = "Use relative paths with forward slashes."
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:", path):
        raise bundle_error(archive, path, "The path is absolute.", fix, "bundle/absolute-path")
    if "\\" in path:
        raise bundle_error(archive, path, "The path has a backslash.", fix, "bundle/backslash")
    if _CONTROL.search(path):
        raise bundle_error(
            archive, path, "The path has a control character or is not UTF-8.", fix, "bundle/bad-path"
        )
    parts = path.split("/")
    if ".." in parts:
        raise bundle_error(archive, path, "The path contains '..'.", fix, "bundle/upward-path")
    if "" in parts or "." in parts:
        raise bundle_error(archive, path, "The path has an empty part or '.'.", fix, "bundle/bad-path")
    if len(path.encode()) > MAX_PATH:
        what = f"The path is longer than {MAX_PATH} bytes."
        raise bundle_error(archive, path, what, "Shorten it.", "bundle/long-path")


def check_total(archive: str, *, size: int, count: int) -> None:
    """Reject files that are too large or too many together."""
    if size > MAX_TOTAL_BYTES:
        raise too_large(archive)
    if count > MAX_MEMBERS:
        raise too_many(archive)


def too_large_file(archive: str, path: str) -> ScenarioFileError:
    """Return the error for one file that is too large."""
    what = f"The file is larger than {MAX_FILE_BYTES:,} bytes."
    return bundle_error(
        archive, path, what, "Make it smaller, or download it in setup.commands.", "bundle/large-file"
    )


def too_large(archive: str) -> ScenarioFileError:
    """Return the error for files that are too large in total."""
    what = f"The files have more than {MAX_TOTAL_BYTES:,} bytes in total."
    return bundle_error(
        archive, "", what, "Split the suite or make its fixtures smaller.", "bundle/too-large"
    )


def too_many(archive: str) -> ScenarioFileError:
    """Return the error for too many files."""
    what = f"The upload has more than {MAX_MEMBERS:,} files."
    return bundle_error(archive, "", what, "Split the suite.", "bundle/too-many-files")


def _check_folders(archive: str, by_path: dict[str, Member]) -> None:
    for member in by_path.values():
        folder = member.path.casefold()
        while folder := posixpath.dirname(folder):
            if folder in by_path:
                what = "The path is both a file and a folder."
                raise bundle_error(
                    archive, by_path[folder].path, what, "Rename one of them.", "bundle/same-path"
                )


def read_whole(path: Path, *, most: int = MAX_FILE_BYTES) -> bytes:
    """Return a file's content. Raises `OSError` for a larger file, because a device could fill the memory."""
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes", str(path))
    return content

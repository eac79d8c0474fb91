"""Keep files that evalhub lays after the agent out of `git status`, so that a gate on a clean tree still passes."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from runs.sandbox.safe_paths import (
    FOLDER,
    make_folder_beneath,
    open_beneath,
    read_beneath,
    write_beneath,
)
from scenarios.formats.agentv.eval_file_context import folders_above

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

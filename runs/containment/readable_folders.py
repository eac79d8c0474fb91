"""Folders outside the system's own that every command may read, wherever it is contained."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from runs.containment import bubblewrap


@cache
def readable_folders(path: str, read: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the interpreter's, the environment's, those of a PATH and the further ones, none below another."""
    folders = [Path(sys.base_prefix), Path(sys.prefix), *read]
    folders += [_with_what_it_starts(Path(name)) for name in path.split(":") if name.startswith("/")]
    further = {folder for folder in folders if _is_further(folder)}
    # One below another is there already, and every mount costs a sandbox time.
    return tuple(sorted(folder for folder in further if further.isdisjoint(folder.parents)))


def _with_what_it_starts(folder: Path) -> Path:
    """Version managers put shims on PATH, which start what lies beside their folder."""
    return folder.parent if folder.name == "shims" else folder


def _is_further(folder: Path) -> bool:
    known = folder == Path("/") or str(folder) in bubblewrap.SYSTEM or folder.is_relative_to("/usr")
    return not known and folder.is_dir()

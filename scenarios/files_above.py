"""Find what AgentV's eval files name in folders above the one that a command was given: `evals/` beside `prompts/`."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path

from scenarios.formats import decode_by_extension
from scenarios.formats.agentv import FORMAT


def find_files_above(root: Path, files: Mapping[str, bytes]) -> tuple[Path, list[Path]]:
    """Return the nearest folder that holds `root` and all that its eval files name above it, and those files.

    They lie in the same repository; without one, in the folder above `evals/`. No link is followed. `files` are those
    of `root`, which is resolved, by path.
    """
    repository = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    limit = repository or (root.parent if root.name == "evals" else root)
    named = {
        path
        for path, content in files.items()
        if b"../" in content and path.endswith((".yaml", ".yml", ".jsonl"))
    }
    # By its words: a link on the way would lead elsewhere.
    outside = {
        place
        for path in named
        for name in _names_above(path, files[path])
        if (place := Path(os.path.normpath((root / posixpath.dirname(path)) / name))).is_relative_to(limit)
        and not place.is_relative_to(root)
        and not root.is_relative_to(place)
    }
    found = sorted({file for place in outside for file in _files_of(place)})
    return Path(os.path.commonpath([root, *(file.parent for file in found)])), found


def _names_above(path: str, content: bytes) -> Iterator[str]:
    document = decode_by_extension(path, content)
    if document is not None and FORMAT.matches(path, document.value):
        yield from (name for name in FORMAT.companions(document) if name.startswith("../"))


def _files_of(place: Path) -> Iterator[Path]:
    """Yield a file, or the files of a folder; nothing that a link leads to."""
    if place.resolve() != place:
        return
    if place.is_file():
        yield place
    for folder, folders, names in os.walk(place):
        folders[:] = [each for each in folders if each != ".git"]
        paths = (Path(folder, name) for name in names)
        yield from (path for path in paths if path.is_file() and not path.is_symlink())

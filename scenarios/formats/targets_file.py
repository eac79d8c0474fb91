"""The targets file that may come with scenarios; `scenarios` keeps its text and never reads it."""

from __future__ import annotations

import posixpath

from scenarios.formats.upload import Upload

TARGETS_FILES = ("targets.yaml", "targets.yml", ".agentv/targets.yaml", ".agentv/targets.yml")
_NAMES = {"targets.yaml", "targets.yml"}


def find_targets_file(upload: Upload) -> tuple[str, str]:
    """Return path and text of the targets file nearest to the root, or two empty texts."""
    found = [path for path in upload.files if is_targets_file(path) and "templates" not in path.split("/")]
    if not found:
        return "", ""
    path = min(found, key=lambda path: (path.count("/"), path))
    return path, upload.files[path].decode("utf-8", errors="replace")


def is_targets_file(path: str) -> bool:
    """Tell a targets file by its name."""
    return posixpath.basename(path) in _NAMES

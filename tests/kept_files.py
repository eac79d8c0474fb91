"""Where the local store keeps a trial's files, for tests that look at the disk."""

from pathlib import Path

from runs.results.files.artifacts import name_of, open_file_store


def path_of(sha256: str) -> Path:
    """Return the path of a content in the local store."""
    return Path(open_file_store().path(name_of(sha256)))

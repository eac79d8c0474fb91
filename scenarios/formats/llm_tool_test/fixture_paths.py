"""Find the fixture folder and the rubric file of a scenario."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from scenarios.formats.upload import UploadedFiles, inside


def is_outside(value: str) -> bool:
    """Return whether a path is absolute or contains `..`, which fixtures must not."""
    return inside("", value) is None or ".." in value.split("/")


def candidates(value: str, fixture_folders: tuple[str, ...]) -> list[str]:
    """Return the possible paths of a template folder; the first existing one is used."""
    named = [posixpath.join(folder, "templates", value) for folder in fixture_folders]
    return [*named, posixpath.join("templates", value), value]


def find_folder(upload: UploadedFiles, file: str, value: str, fixture_folders: tuple[str, ...]) -> str | None:
    """Return a fixture's folder, searched from the scenario's folder, then from the root."""
    for path in _from_both_bases(file, candidates(value, fixture_folders)):
        if path in upload.folders or (path == "." and upload.files):
            return path
    return None


def find_file(upload: UploadedFiles, file: str, value: str, fixture_folders: tuple[str, ...]) -> str | None:
    """Return a file's path, searched from the scenario's folder, then from the root."""
    named = [value, *(posixpath.join(folder, value) for folder in fixture_folders)]
    for path in _from_both_bases(file, named):
        if path in upload.files:
            return path
    return None


def contains_file(folder: str, path: str) -> bool:
    """Return whether a fixture's folder contains a file.

    Subfolders called `scenarios` do not count, because llm-tool-test does not copy them.
    """
    below = path if folder == "." else path.removeprefix(folder + "/")
    return (folder == "." or below != path) and "scenarios" not in below.split("/")[:-1]


def _from_both_bases(file: str, values: list[str]) -> Iterator[str]:
    for base in dict.fromkeys((posixpath.dirname(file), "")):
        for value in values:
            if (path := inside(base, value)) is not None:
                yield path

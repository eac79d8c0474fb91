"""Finds what a scenario names: its fixture's folder and its rubric's file."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from scenarios.formats.upload import UploadedFiles, inside


def is_outside(value: str) -> bool:
    """Tell whether a path is absolute or has a step upwards, which no fixture may have."""
    return inside("", value) is None or ".." in value.split("/")


def candidates(value: str, fixture_folders: tuple[str, ...]) -> list[str]:
    """Return the places of a template folder below a base, the first that exists wins."""
    named = [posixpath.join(folder, "templates", value) for folder in fixture_folders]
    return [*named, posixpath.join("templates", value), value]


def find_folder(upload: UploadedFiles, file: str, value: str, fixture_folders: tuple[str, ...]) -> str | None:
    """Return the folder of a fixture, looked for beside its scenario and then from the root."""
    for path in _from_both_bases(file, candidates(value, fixture_folders)):
        if path in upload.folders or (path == "." and upload.files):
            return path
    return None


def find_file(upload: UploadedFiles, file: str, value: str, fixture_folders: tuple[str, ...]) -> str | None:
    """Return the path of a file such as a rubric, looked for beside its scenario and then from the root."""
    named = [value, *(posixpath.join(folder, value) for folder in fixture_folders)]
    for path in _from_both_bases(file, named):
        if path in upload.files:
            return path
    return None


def holds(folder: str, path: str) -> bool:
    """Tell whether a fixture's folder has a file as content.

    Sub-folders called `scenarios` are left out, as llm-tool-test leaves them out when it copies a template.
    """
    below = path if folder == "." else path.removeprefix(folder + "/")
    return (folder == "." or below != path) and "scenarios" not in below.split("/")[:-1]


def _from_both_bases(file: str, values: list[str]) -> Iterator[str]:
    for base in dict.fromkeys((posixpath.dirname(file), "")):
        for value in values:
            if (path := inside(base, value)) is not None:
                yield path

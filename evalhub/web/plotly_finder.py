"""Plotly's script from the installed package: nothing third-party lies in the repository."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage, Storage

SCRIPT = "plotly.min.js"
PREFIX = "vendor"


def package_folder() -> Path:
    """Return the folder of the script, found without importing plotly, which takes half a second."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("plotly is not installed; run 'make setup'.")
    return Path(spec.origin).parent / "package_data"


class PlotlyFinder(BaseFinder):
    """Finds one file, `vendor/plotly.min.js`, and none of the megabytes beside it."""

    def check(self, **_: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **_: Any) -> Any:
        matches = [str(package_folder() / SCRIPT)] if path == f"{PREFIX}/{SCRIPT}" else []
        return matches if find_all else (matches[0] if matches else [])

    def list(self, ignore_patterns: Any) -> Iterator[tuple[str, Storage]]:
        storage = FileSystemStorage(location=str(package_folder()))
        storage.prefix = PREFIX  # type: ignore[attr-defined]  # how collectstatic learns of a prefix
        yield SCRIPT, storage

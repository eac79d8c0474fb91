"""Find the seed manifest, by convention `evals/seed-manifest.json`."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from evaluators.model import Json
from scenarios.formats.json_text import read_json
from scenarios.formats.problems import Problem, ScenarioFileError
from scenarios.formats.upload import UploadedFiles

FILE_NAME = "seed-manifest.json"
PLACES = (FILE_NAME, f"evals/{FILE_NAME}")


@dataclass(frozen=True)
class Seed:
    """The manifest of an eval file, or an empty value."""

    file: str = ""
    value: Json = None
    problems: tuple[Problem, ...] = ()


def find_seed(upload: UploadedFiles, eval_file: str) -> Seed:
    """Return the nearest manifest, in the eval file's folder or one above."""
    folder = posixpath.dirname(eval_file)
    while True:
        for place in PLACES:
            path = posixpath.join(folder, place)
            if path in upload.files:
                return _read(path, upload.files[path])
        if not folder:
            return Seed()
        folder = posixpath.dirname(folder)


def _read(path: str, content: bytes) -> Seed:
    try:
        return Seed(path, read_json(content, path).value)
    except ScenarioFileError as error:
        return Seed(path, problems=error.problems)

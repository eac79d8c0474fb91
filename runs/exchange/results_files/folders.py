"""Pack a folder of results, so that it is read as an archive is."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

from runs.exchange.results_files.llm_tool_test import FIXTURE, READ

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every entry: the same results give the same archive, which is imported once."""


def packed(folder: Path) -> bytes:
    """Return the files of results below a folder as zip, without links; empty for none."""
    buffer, found = io.BytesIO(), 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, folders, names in os.walk(folder):
            folders.sort()
            if FIXTURE in folders and "artifacts" in folders:
                folders.remove(FIXTURE)  # The agent's files, not results.
            for path in (Path(place, name) for name in sorted(names) if name in READ):
                if path.is_file() and not path.is_symlink():
                    # A run's folder keeps its name, by which results.jsonl refers to it.
                    inside = Path(folder.resolve().name) / path.relative_to(folder)
                    archive.writestr(zipfile.ZipInfo(inside.as_posix(), _EPOCH), path.read_bytes())
                    found += 1
    return buffer.getvalue() if found else b""

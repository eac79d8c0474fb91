"""The JSON Schemas in the repository, for editors of a clone: `python -m tests.schema_files` writes `docs/schemas/`."""

from __future__ import annotations

import os
from pathlib import Path

import django

FOLDER = Path(__file__).parents[1] / "docs/schemas"


def texts() -> dict[str, str]:
    """Return each schema by the name of its file."""
    from runs.suites.file_schemas import FILE_SCHEMAS, schema_text

    return {f"{name}.json": schema_text(name) for name in FILE_SCHEMAS}


def main() -> None:
    """Write a file for each schema, and remove files without one."""
    FOLDER.mkdir(exist_ok=True)
    written = texts()
    for path in FOLDER.glob("*.json"):
        if path.name not in written:
            path.unlink()
    for name, text in written.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    django.setup()
    main()

"""`backup`: copy everything while evalhub runs."""

from __future__ import annotations

import sqlite3
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from evalhub.lib.numbers import format_count, format_file_size
from runs.results.files.backup import BackupFailed, back_up
from scenarios.commands import EvalhubCommand, Refused, Result


class Command(EvalhubCommand):
    help = "Copy the database, the stored files and the secret key to a folder while evalhub runs."
    examples = ("/srv/backup/evalhub",)

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", help="created if missing; a second backup adds only new files")

    def work(self, options: dict[str, Any]) -> Result:
        folder = _folder(options["folder"])
        try:
            copied = back_up(folder)
        except BackupFailed as error:
            raise Refused(str(error), id="backup/failed") from error
        except (OSError, sqlite3.Error) as error:
            raise Refused(
                f"{folder}: the backup failed: {error}. Check free space and permissions.", id="backup/failed"
            ) from error
        lines = [
            f"Copied the database to {copied.database}.",
            f"Copied {format_count(copied.files, 'new file')} ({format_file_size(copied.bytes)}) to {folder / 'artifacts'}.",
        ]
        document = {
            "folder": str(folder),
            "database": str(copied.database),
            "files": copied.files,
            "bytes": copied.bytes,
        }
        return Result("\n".join(lines), document)


def _folder(name: str) -> Path:
    # An unset variable of a script must not mean the current folder.
    if not name:
        raise Refused("The folder is empty. Name one, or use '.' for the current folder.", id="backup/folder")
    return Path(name)

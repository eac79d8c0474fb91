"""Backups, while evalhub runs."""

from __future__ import annotations

import sqlite3
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from evalhub.web.numbers import file_size
from runs.warehouse.backup import BackupFailed, back_up
from scenarios.commands import EvalhubCommand, Refused, Result


class Command(EvalhubCommand):
    help = "Copy the database, the kept files and the secret into a folder, while evalhub runs."

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", help="made when it is missing; a second backup adds what is new")

    def work(self, options: dict[str, Any]) -> Result:
        folder = _folder(options["folder"])
        try:
            copied = back_up(folder)
        except BackupFailed as error:
            raise Refused(str(error), id="backup/failed") from error
        except (OSError, sqlite3.Error) as error:
            raise Refused(
                f"{folder}: the backup failed: {error}. Check its space and owner.", id="backup/failed"
            ) from error
        lines = [
            f"The database is in {copied.database}.",
            f"{copied.files} new files of {file_size(copied.bytes)} are in {folder / 'artifacts'}.",
        ]
        document = {
            "folder": str(folder),
            "database": str(copied.database),
            "files": copied.files,
            "bytes": copied.bytes,
        }
        return Result("\n".join(lines), document)


def _folder(said: str) -> Path:
    # As a variable that is not set; it would be the folder that one is in.
    if not said:
        raise Refused("The folder is empty. Name one; '.' is the one that you are in.", id="backup/folder")
    return Path(said)

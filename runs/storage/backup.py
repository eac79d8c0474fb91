"""A copy of everything that cannot be made again: the database, the kept files, and the secret of the sessions."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection

DATABASE_FILE = "evalhub.sqlite3"
SECRET_FILE = "secret_key"  # noqa: S105 (a file's name)
HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Copied:
    """What a backup holds: the database's file, if evalhub can copy it, and the files that were new."""

    database: Path | None
    files: int
    bytes: int


def back_up(folder: Path) -> Copied:
    """Copy everything into a folder; one that holds an earlier backup gets only what is new.

    The database comes first: a file is written before the row that names it, so each row of the copy has its file.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = _copy_sqlite(folder / DATABASE_FILE) if connection.vendor == "sqlite" else None
    secret = Path(settings.DATA_DIR) / SECRET_FILE
    if secret.exists():
        shutil.copyfile(secret, folder / SECRET_FILE)
        (folder / SECRET_FILE).chmod(0o600)
    # A name that is no hash is of a file that is just being written: it is gone in a moment, and no row names it.
    kept = [path for path in Path(settings.ARTIFACTS_DIR).glob("??/*") if HASH.fullmatch(path.name)]
    copied = [_copy_file(path, folder / "artifacts") for path in kept]
    new = [size for size in copied if size is not None]
    return Copied(database, len(new), sum(new))


def _copy_sqlite(target: Path) -> Path:
    """Copy the database as of one moment, while others go on writing (SQLite's online backup)."""
    name = str(connection.settings_dict["NAME"])
    part = target.with_suffix(".part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(name)) as source, closing(sqlite3.connect(part)) as copy:
        source.backup(copy)
        (said,) = copy.execute("PRAGMA integrity_check").fetchone()
    if said != "ok":
        raise OSError(f"The copy of {name} is not sound: {said}.")
    part.chmod(0o600)
    part.replace(target)
    return target


def _copy_file(path: Path, root: Path) -> int | None:
    """Copy a kept file by its hash; None where the backup has it already."""
    target = root / path.parent.name / path.name
    if target.exists():
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}")
    shutil.copyfile(path, part)
    part.replace(target)
    return target.stat().st_size

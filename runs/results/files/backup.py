"""Back up everything irreplaceable: the database, the stored files and the session secret."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection

from runs.results.files.artifacts import (
    list_folders,
    open_file_store,
    store_error_reason,
    store_errors,
)

DATABASE_FILE = "evalhub.sqlite3"
DUMP_FILE = "evalhub.dump"
SECRET_FILE = "secret_key"  # noqa: S105 (a file's name)
HASH = re.compile(r"[0-9a-f]{64}")


class BackupFailed(Exception):
    """A backup is incomplete; the message is a sentence."""


@dataclass(frozen=True)
class Copied:
    """A backup's contents: the database and the new files."""

    database: Path
    files: int
    bytes: int


def back_up(folder: Path) -> Copied:
    """Back up into a folder; add only new files to an earlier backup.

    The database is read first: a file is written before the row that names it, so each row of the copy has its file.
    The copy takes its place last: if this breaks off, the folder still holds the earlier backup.
    Raises `OSError`, `sqlite3.Error` or `BackupFailed`.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    is_sqlite = connection.vendor == "sqlite"
    database = folder / (DATABASE_FILE if is_sqlite else DUMP_FILE)
    part = database.with_suffix(".part")
    part.unlink(missing_ok=True)
    try:
        if is_sqlite:
            _copy_sqlite(part)
        else:
            _dump_postgresql(part)
        part.chmod(0o600)
        new = _copy_files(folder)
        part.replace(database)
    finally:
        part.unlink(missing_ok=True)
    return Copied(database, len(new), sum(new))


def _copy_files(folder: Path) -> list[int]:
    """Copy the secret key and every stored file that the folder lacks; return the sizes of these files."""
    _write_secret(folder / SECRET_FILE)
    try:
        copied = [_copy_file(name, folder / "artifacts") for name in _kept_names()]
    except store_errors() as error:
        raise BackupFailed(
            f"{folder}: the files could not be copied: {store_error_reason(error)}. Check free space and permissions."
        ) from error
    return [size for size in copied if size is not None]


def _write_secret(path: Path) -> None:
    """Write the key that signs sessions, wherever evalhub has it from; only its owner may read it."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(settings.SECRET_KEY)
    part.replace(path)


def _kept_names() -> Iterator[str]:
    for folder in list_folders():
        # Names that are not hashes belong to files still being written; no row refers to them.
        yield from (
            f"{folder}/{name}" for name in open_file_store().listdir(folder)[1] if HASH.fullmatch(name)
        )


def _dump_postgresql(target: Path) -> None:
    """Dump a consistent snapshot with pg_dump in its custom format."""
    conninfo, password = _libpq()
    words = ["pg_dump", "--format", "custom", "--no-password", "--file", str(target), "--dbname", conninfo]
    try:
        ended = subprocess.run(words, env={**os.environ, **password}, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise BackupFailed(
            "pg_dump is not installed here, so nothing was copied. Install PostgreSQL's client programs, "
            f"version {_server_version()} or later."
        ) from error
    if ended.returncode:
        reason = ended.stderr.decode("utf-8", "replace").strip().rstrip(".")
        raise BackupFailed(f"pg_dump failed, so nothing was copied: {reason}.")


def _libpq() -> tuple[str, dict[str, str]]:
    """Return evalhub's connection as pg_dump takes it, and the variable with its password."""
    # Imported here because SQLite doesn't need it.
    from psycopg import pq
    from psycopg.conninfo import make_conninfo

    parameters = connection.get_connection_params()
    # Without options of Django and psycopg; libpq marks its secret ones, because any user can list arguments.
    public = {each.keyword.decode() for each in pq.Conninfo.get_defaults() if not each.dispchar}
    conninfo = make_conninfo(**{name: value for name, value in parameters.items() if name in public})
    return conninfo, {"PGPASSWORD": str(parameters["password"])} if "password" in parameters else {}


def _server_version() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0]) // 10_000


def _copy_sqlite(target: Path) -> None:
    """Copy a consistent snapshot during writes (SQLite's online backup)."""
    name = str(connection.settings_dict["NAME"])
    with closing(sqlite3.connect(name)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
        (result,) = copy.execute("PRAGMA integrity_check").fetchone()
    if result != "ok":
        raise OSError(f"The copy of {name} is damaged: {result}.")


def _copy_file(name: str, root: Path) -> int | None:
    """Copy a stored file; None if the backup already has it."""
    target = root / name
    if target.exists():
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}")
    try:
        with open_file_store().open(name, "rb") as source, part.open("wb") as copy:
            shutil.copyfileobj(source, copy)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target.stat().st_size

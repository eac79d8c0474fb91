"""Back up everything irreplaceable: the database, the stored files and the session secret.

Prune old runs' transcripts and files; keep their results.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.db.models import Count, Max, QuerySet, Sum
from django.db.models.functions import Length

from evalhub.teams import audit
from evalhub.teams.models import Project
from runs.models import Artifact, Run, TranscriptRecord
from runs.models.run import OPEN
from runs.results.files.artifacts import (
    folders,
    is_missing_file,
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
    for folder in folders():
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


_SIZES = {
    "postgresql": (
        "SELECT relname, pg_total_relation_size(oid) FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    ),
    # Indexes have pages of their own.
    "sqlite": (
        "SELECT named.tbl_name, SUM(pages.pgsize) FROM dbstat AS pages "
        "JOIN sqlite_master AS named ON named.name = pages.name WHERE pages.aggregate = TRUE GROUP BY named.tbl_name"
    ),
}
FILES = "stored files"


def space_taken() -> dict[str, int]:
    """Return the bytes of each table with its indexes, and of the stored files under `FILES`; the largest first.

    No tables where SQLite was built without its statistics. Reads all of an SQLite database.
    """
    sizes = {FILES: stored_bytes()}
    try:
        with connection.cursor() as cursor:
            cursor.execute(_SIZES[connection.vendor])
            sizes |= {name: int(size) for name, size in cursor.fetchall()}
    except OperationalError as error:
        if "no such table: dbstat" not in str(error):
            raise
    return dict(sorted(sizes.items(), key=lambda table: (-table[1], table[0])))


def stored_bytes() -> int:
    """Return the bytes of the files that trials name; equal content is stored once. One query."""
    contents = Artifact.objects.order_by().values("sha256").annotate(bytes=Max("size"))
    return contents.aggregate(total=Sum("bytes"))["total"] or 0


RUNS_AT_ONCE = 50
"""Runs per transaction, so that writers never wait long."""
HASH_LENGTH = 64
YOUNGEST_SECONDS = 3600
"""Seconds in which a new file may still get its row."""


@dataclass(frozen=True)
class Pruned:
    """Numbers of deleted rows and files; in a dry run, of those that would be."""

    runs: int = 0
    transcripts: int = 0
    artifacts: int = 0
    transcript_bytes: int = 0
    """Bytes of the transcripts in the database."""
    files: int = 0
    bytes: int = 0
    """Bytes of the files."""

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(
            *(mine + its for mine, its in zip(vars(self).values(), vars(other).values(), strict=True))
        )


def prunable(before: datetime) -> QuerySet[Run]:
    """Return the closed runs before a time that are not pinned as a baseline."""
    return Run.objects.filter(created__lt=before, baseline_of=None).exclude(state__in=OPEN).order_by("pk")


def prune_runs(before: datetime, *, by: User | None, dry_run: bool) -> Pruned:
    """Remove transcripts and artifacts of old runs, with a line in the audit log of each project."""
    projects = Project.objects.filter(runs__in=prunable(before)).distinct()
    return sum((_prune_project(project, before, by, dry_run=dry_run) for project in projects), Pruned())


def _prune_project(project: Project, before: datetime, by: User | None, *, dry_run: bool) -> Pruned:
    keys = list(prunable(before).filter(project=project).values_list("pk", flat=True))
    done, event = Pruned(), None
    for start in range(0, len(keys), RUNS_AT_ONCE):
        with transaction.atomic():
            # Asked again: a run may have become a baseline, or be retried, meanwhile.
            still = prunable(before).filter(pk__in=keys[start : start + RUNS_AT_ONCE])
            done += _prune_some(list(still.values_list("pk", flat=True)), dry_run=dry_run)
            if done.runs and not dry_run:
                # Updated with each part: a prune that is killed has its line, too.
                event = event or audit.append_event(
                    project, by, "retention.prune", f"before {before:%Y-%m-%d}"
                )
                event.detail = {
                    "runs": done.runs,
                    "transcripts": done.transcripts,
                    "artifacts": done.artifacts,
                }
                event.save(update_fields=["detail"])
    return done


def _prune_some(keys: list[int], *, dry_run: bool) -> Pruned:
    """Remove transcripts and artifacts of these runs. Requires a transaction."""
    transcripts = TranscriptRecord.objects.filter(trial__run__in=keys)
    artifacts = Artifact.objects.filter(trial__run__in=keys)
    counted = Run.objects.filter(pk__in=_touched_keys(transcripts) | _touched_keys(artifacts)).count()
    sizes = transcripts.order_by().aggregate(n=Count("pk"), bytes=Sum(Length("data")))
    pruned = Pruned(
        runs=counted,
        transcripts=sizes["n"],
        artifacts=artifacts.count(),
        transcript_bytes=sizes["bytes"] or 0,
    )
    if not dry_run:
        transcripts.delete()
        artifacts.delete()
    return pruned


def _touched_keys(rows: QuerySet[Any]) -> set[int]:
    return set(rows.order_by().values_list("trial__run", flat=True).distinct())


def find_unreferenced(now: float, let_go: datetime | None = None) -> Iterator[str]:
    """Yield older stored files without a row; `now` is in seconds since 1970.

    Rows of runs prunable as of `let_go` don't count. Raises one of `store_errors()`.
    """
    store = open_file_store()
    for folder in sorted(folders()):
        # A folder has few enough names for one query.
        # As a range, because no database finds a prefix by a plain index.
        within = (folder.ljust(HASH_LENGTH, "0"), folder.ljust(HASH_LENGTH, "f"))
        naming = Artifact.objects.filter(sha256__range=within)
        if let_go is not None:
            naming = naming.exclude(trial__run__in=prunable(let_go).order_by())
        named = set(naming.values_list("sha256", flat=True))
        for name in sorted(set(store.listdir(folder)[1]) - named):
            if _is_old(f"{folder}/{name}", now):
                yield f"{folder}/{name}"


def _is_old(name: str, now: float) -> bool:
    """Return whether a listed file is too old to still get its row; False if it is gone."""
    try:
        return now - open_file_store().get_modified_time(name).timestamp() > YOUNGEST_SECONDS
    except store_errors() as error:
        # A worker renamed its temporary file, or another `prune` was faster.
        if is_missing_file(error):
            return False
        raise


def prune_files(*, dry_run: bool, let_go: datetime | None = None) -> Pruned:
    """Remove files without a row; or only count them, with those that `let_go` would free.

    Raises one of `store_errors()`.
    """
    done = Pruned()
    for name in find_unreferenced(time.time(), let_go):
        done += Pruned(files=1, bytes=open_file_store().size(name))
        if not dry_run:
            open_file_store().delete(name)
    return done

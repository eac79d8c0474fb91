"""Prune old runs' transcripts and files; keep their results."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.db.models import Count, Max, QuerySet, Sum
from django.db.models.functions import Length

from evalhub.teams import audit
from evalhub.teams.models import Project
from runs.models import Artifact, Run, TranscriptRecord
from runs.models.run import OPEN
from runs.results.files.artifacts import (
    is_missing_file,
    list_folders,
    open_file_store,
    store_errors,
)

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


def find_prunable(before: datetime) -> QuerySet[Run]:
    """Return the closed runs before a time that are not pinned as a baseline."""
    return Run.objects.filter(created__lt=before, baseline_of=None).exclude(state__in=OPEN).order_by("pk")


def prune_runs(before: datetime, *, by: User | None, dry_run: bool) -> Pruned:
    """Remove transcripts and artifacts of old runs, with a line in the audit log of each project."""
    projects = Project.objects.filter(runs__in=find_prunable(before)).distinct()
    return sum((_prune_project(project, before, by, dry_run=dry_run) for project in projects), Pruned())


def _prune_project(project: Project, before: datetime, by: User | None, *, dry_run: bool) -> Pruned:
    keys = list(find_prunable(before).filter(project=project).values_list("pk", flat=True))
    done, event = Pruned(), None
    for start in range(0, len(keys), RUNS_AT_ONCE):
        with transaction.atomic():
            # Asked again: a run may have become a baseline, or be retried, meanwhile.
            still = find_prunable(before).filter(pk__in=keys[start : start + RUNS_AT_ONCE])
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
    for folder in sorted(list_folders()):
        # A folder has few enough names for one query.
        # As a range, because no database finds a prefix by a plain index.
        within = (folder.ljust(HASH_LENGTH, "0"), folder.ljust(HASH_LENGTH, "f"))
        naming = Artifact.objects.filter(sha256__range=within)
        if let_go is not None:
            naming = naming.exclude(trial__run__in=find_prunable(let_go).order_by())
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

"""Import results of other programs, and runs of another evalhub, as closed runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.teams import audit
from evalhub.teams.models import Project
from runs.errors import RequestError
from runs.exchange.imports.import_archive import store_archived
from runs.exchange.imports.merged_shards import merge_shards
from runs.exchange.imports.store_results import store_results, stored_run
from runs.exchange.results_files.archived_runs import Archived, written_by
from runs.exchange.results_files.importers import ReadResults, read_results
from runs.models import Launch, Run
from runs.models.run import Trigger


@transaction.atomic
def import_results(project: Project, content: bytes, file: str, *, by: User | None) -> tuple[Run, ...]:
    """Import a results file and return its runs, or the existing ones of an earlier import.

    Layer 1 is computed from transcripts, if the results have any; an archive of evalhub's brings it. Raises
    `RequestError` for a file without results, `ScenarioFileError` for a broken archive, and stores nothing.
    """
    _lock(project)
    sha256 = hashlib.sha256(content).hexdigest()
    if before := runs_of_file(project, sha256):
        return before
    read = read_results(file, content)
    if read.archived:
        return _store(project, read.archived, read.members, file, sha256, by)
    return store_results(project, read.external, file, sha256, by=by)


@transaction.atomic
def import_merged(
    project: Project, files: Sequence[tuple[str, bytes]], *, by: User | None
) -> tuple[Run, ...]:
    """Import archives of evalhub's, with the shards of a run merged into one. Raises `RequestError`."""
    _lock(project)
    read = read_merged(files)
    sha256 = hashlib.sha256(b"".join(content for _, content in files)).hexdigest()
    names = ", ".join(file for file, _ in files)
    return _store(project, read.archived, read.members, names, sha256, by)


def read_merged(files: Sequence[tuple[str, bytes]]) -> ReadResults:
    """Return the runs of archives of evalhub's, with the shards of a run merged into one. Raises `RequestError`."""
    runs: list[Archived] = []
    members: dict[str, bytes] = {}
    for file, content in files:
        archive = read_results(file, content)
        if not archive.archived:
            raise RequestError(
                f"{file}: --merge takes archives of runs (export_run --format evalhub). Leave it out."
            )
        runs += archive.archived
        members |= archive.members
    return ReadResults("evalhub", written_by(members), merge_shards(runs), members)


def runs_of_file(project: Project, sha256: str) -> tuple[Run, ...]:
    """Return the runs that an earlier import of a file with this hash created or found."""
    before = Run.objects.filter(project=project, trigger=Trigger.IMPORT, options__import__sha256=sha256)
    return tuple(before.select_related("suite", "target").order_by("pk"))


def _lock(project: Project) -> None:
    """Let a concurrent import of the same content wait; rows that refer to the project don't."""
    Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)


def _store(
    project: Project,
    runs: Sequence[Archived],
    members: Mapping[str, bytes],
    file: str,
    sha256: str,
    by: User | None,
) -> tuple[Run, ...]:
    """Store the runs of archives, oldest first; one that is stored already stays as it is."""
    ordered = sorted(runs, key=lambda each: each.run.columns["started"] or each.run.columns["created"])
    stored = {each.run.uuid: stored_run(project, each.run.uuid) for each in ordered}
    fresh = [each for each in ordered if stored[each.run.uuid] is None]
    if fresh:
        launch = Launch.objects.create(project=project, by=by, trigger=Trigger.IMPORT, request={"file": file})
        for archived in fresh:
            stored[archived.run.uuid] = store_archived(launch, archived, members, sha256, by)
        audit.append_event(
            project, by, "results.import", file, runs=[run.pk for run in stored.values() if run]
        )
    return tuple(run for run in stored.values() if run)

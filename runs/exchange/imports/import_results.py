"""Import results of other programs, and runs of another evalhub, as closed runs.

The shards of a matrix of jobs (`run_scenarios --shard 1/3`) can be merged into the run that one job would have made.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from django.contrib.auth.models import User
from django.db import transaction
from msgspec.structs import replace

from evalhub.teams import audit
from evalhub.teams.models import Project
from runs.errors import RequestError
from runs.exchange.imports.import_archive import store_archived
from runs.exchange.imports.store_results import store_results, stored_run
from runs.exchange.results_files.archived_runs import Archived, ArchivedRun, ArchivedTrial, written_by
from runs.exchange.results_files.importers import ReadResults, read_results
from runs.models import Launch, Run
from runs.models.run import Trigger

_SUMS = ("trials", "passed", "failed", "errors", "cancelled", "tokens_in", "tokens_out")
_SHARD = re.compile(r"([1-9]\d{0,3})/([1-9]\d{0,3})")


def shard_of(text: str) -> tuple[int, int]:
    """Return a shard's number and how many there are. Raises `ValueError` for anything but N/M with 1 ≤ N ≤ M."""
    match = _SHARD.fullmatch(text)
    number, of = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= of:
        raise ValueError(f"{text} is not a shard. Give its number and how many there are, such as 1/3.")
    return number, of


def merge_shards(runs: Sequence[Archived]) -> list[Archived]:
    """Return the runs with those that are shards of one suite on one target and configuration merged.

    Raises `RequestError` unless each set of shards is whole.
    """
    groups: dict[tuple[Any, ...], list[Archived]] = {}
    for archived in runs:
        groups.setdefault(_line(archived.run), []).append(archived)
    merged = []
    for group in groups.values():
        shards = [each for each in group if each.run.shard]
        merged += [each for each in group if not each.run.shard]
        merged += [_merge(shards)] if shards else []
    return merged


def _line(run: ArchivedRun) -> tuple[Any, ...]:
    guidance = run.guidance.sha256 if run.guidance else ""
    columns = (run.columns.get(name) for name in ("model", "commit", "branch", "tool_version"))
    parts = run.shard.partition("/")[2]
    return (run.suite.slug, run.suite.sha256, run.target, guidance, parts, *columns)


def _merge(shards: Sequence[Archived]) -> Archived:
    by_uuid = {each.run.uuid: each for each in shards}
    ordered = sorted(by_uuid.values(), key=lambda each: shard_of(each.run.shard))
    _check(ordered)
    first = ordered[0].run
    runs = [each.run for each in ordered]
    columns = {**first.columns, **_totals([each.columns for each in runs])}
    columns["options"] = {**first.columns.get("options", {}), "shard": ""}
    names = "/".join(sorted(each.uuid for each in runs))
    run = replace(
        first,
        # The same shards are the same run, in whatever order and however often they are merged.
        uuid=str(uuid5(NAMESPACE_URL, f"evalhub:shards:{names}")),
        columns=columns,
        trials=sum(each.trials for each in runs),
    )
    return Archived(run, _in_turn(ordered))


def _check(ordered: Sequence[Archived]) -> None:
    numbers = [shard_of(each.run.shard)[0] for each in ordered]
    of = shard_of(ordered[0].run.shard)[1]
    where = f"{ordered[0].run.suite.name} on {ordered[0].run.target}"
    if missing := [str(number) for number in range(1, of + 1) if number not in numbers]:
        raise RequestError(
            f"Shard {', '.join(missing)} of {of} of {where} is missing. Merge the archives of all shards at once."
        )
    if len(numbers) != of:
        raise RequestError(f"{where} has more than one run of a shard. Merge one archive of each shard.")


def _totals(columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns of the whole run."""
    sums = {name: sum(row.get(name) or 0 for row in columns) for name in _SUMS}
    costs = [row["cost_usd"] for row in columns if row.get("cost_usd") is not None]
    outcomes = [row.get("outcome") for row in columns]
    states = {row.get("state") for row in columns}
    passed = "" if "" in outcomes else "pass"
    return {
        **sums,
        "cost_usd": sum(costs) if costs else None,
        "state": "cancelled" if "cancelled" in states else "finished",
        "outcome": next((word for word in ("fail", "error") if word in outcomes), passed),
        "error": " ".join(dict.fromkeys(filter(None, (row.get("error") for row in columns)))),
        "warnings": list(dict.fromkeys(text for row in columns for text in row.get("warnings", []))),
        "created": min(row["created"] for row in columns),
        "started": min(_known_times(row.get("started") for row in columns), default=None),
        "finished": max(_known_times(row.get("finished") for row in columns), default=None),
    }


def _known_times(moments: Iterable[str | None]) -> list[str]:
    return [each for each in moments if each]


def _in_turn(shards: Sequence[Archived]) -> tuple[ArchivedTrial, ...]:
    """Return the trials of all shards: all scenarios once, then all again."""
    trials = [trial for shard in shards for trial in shard.trials]
    ordered = sorted(trials, key=lambda trial: (trial.columns["index"], trial.columns["position"]))
    return tuple(
        replace(trial, columns={**trial.columns, "position": position})
        for position, trial in enumerate(ordered)
    )


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

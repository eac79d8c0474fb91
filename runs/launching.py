"""From paths and names, as people type them, to a request; and runs carried to their end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import QuerySet

from evalhub.teams.models import Project
from runs import lanes, preparation, recording
from runs.errors import RequestError
from runs.models import Launch, Run
from runs.models.run import RunState
from runs.reaping import reap
from runs.targets.accepting import folder_on_disk, take_over, take_over_bundle
from runs.trials import batching
from scenarios.bundle_limits import read_whole
from scenarios.bundles import read_path
from scenarios.formats.parsed import FixtureFile
from scenarios.imports import import_files
from scenarios.models import Guidance, Suite, SuiteVersion
from scenarios.storing import keep_guidance

POLL_SECONDS = 0.3
OPEN = (RunState.QUEUED, RunState.PREPARING, RunState.RUNNING)


def suite_versions(
    project: Project, names: Sequence[str], *, by: User | None, strict: bool = False
) -> list[SuiteVersion]:
    """Return the suite versions that these paths hold or names mean; paths are stored first.

    `strict` is that of `parse_files`. Raises `ScenarioFileError` for files and `RequestError` for a name that is neither.
    """
    found: list[SuiteVersion] = []
    for name in names:
        path = Path(name)
        if path.exists():
            imported = import_files(read_path(path), project=project, by=by, strict=strict)
            for each in imported:
                take_over_bundle(
                    each.version, by=by, base_folder=folder_on_disk(path, each.version.targets_file)
                )
            found += [each.version for each in imported]
        else:
            found.append(newest_version(project, name))
    return found


def newest_version(project: Project, slug: str) -> SuiteVersion:
    """Return the suite version that was uploaded last. Raises `RequestError`."""
    suite = Suite.objects.filter(project=project, slug=slug).first()
    upload = suite.uploads.select_related("suite_version").first() if suite else None
    if upload is None:
        raise RequestError(f"'{slug}' is neither a path nor a suite of {project.name}. Check the spelling.")
    return upload.suite_version


def chosen_guidance(
    versions: Sequence[SuiteVersion], names: Sequence[str], *, by: User | None
) -> list[Guidance]:
    """Return the guidance versions that names mean: a file, a number, a name or the start of a hash.

    A file is stored as a version of each suite. Raises `RequestError`.
    """
    return [_guidance(version.suite, name, by) for version in versions for name in names]


def _guidance(suite: Suite, name: str, by: User | None) -> Guidance:
    path = Path(name)
    if path.is_file():
        document = FixtureFile(path.name, _guidance_text(path))
        return keep_guidance(suite, (document,), by=by)[0]
    for guidance in suite.guidance.all():
        if name in (str(guidance.number), guidance.name) or (
            len(name) >= 6 and guidance.sha256.startswith(name)
        ):
            return guidance
    numbers = ", ".join(str(each.number) for each in suite.guidance.all()) or "none"
    raise RequestError(
        f"'{name}' is neither a file nor a guidance version of {suite.name}. It has: {numbers}."
    )


def _guidance_text(path: Path) -> bytes:
    try:
        return read_whole(path)
    except OSError as error:
        raise RequestError(
            f"{path}: The guidance cannot be read: {error.strerror}. Check the path."
        ) from error


def take_targets_file(project: Project, path: Path, *, by: User | None) -> None:
    """Store the targets of a file; relative paths in it start from its folder."""
    try:
        content = read_whole(path)
    except OSError as error:
        raise RequestError(
            f"{path}: The targets cannot be read: {error.strerror}. Check the path."
        ) from error
    take_over(project, content, path.name, by=by, base_folder=str(path.resolve().parent))


Ended = Callable[[int], None]
"""Is told the number of each run as soon as it has ended."""


class Ends:
    """Tells of each run of a launch once, when it has ended."""

    def __init__(self, launch: Launch, ended: Ended | None) -> None:
        self._launch = launch
        self._ended = ended
        self._told: set[int] = set()

    def tell(self) -> None:
        """Tell of those that have ended since the last call."""
        if self._ended is None:
            return
        over = self._launch.runs.exclude(state__in=OPEN).exclude(pk__in=self._told)
        for run_id in over.order_by("pk").values_list("pk", flat=True):
            self._ended(run_id)
            self._told.add(run_id)


def carry_here(launch: Launch, ended: Ended | None = None) -> None:
    """Prepare the launch's runs and carry them to their end in threads of this process.

    Ctrl-C cancels them: running agents are stopped, and what is finished stays.
    """
    threads: list[lanes.LaneThread] = []
    ends = Ends(launch, ended)
    try:
        while waiting := list(open_runs(launch).order_by("pk").values_list("pk", flat=True)):
            for run_id in waiting:
                preparation.prepare_run(run_id)
            threads = lanes.start_threads([run_id for run_id in waiting if not batching.waits(run_id)])
            for thread in threads:
                while not thread.over.wait(POLL_SECONDS):
                    ends.tell()
            ends.tell()
            if open_runs(launch).exists():
                # Another process holds the target's places, or held a trial and was lost.
                time.sleep(POLL_SECONDS)
                reap()
    except KeyboardInterrupt:
        # It may have come in the midst of a transaction: what is left to do gets a connection that knows nothing of it.
        connection.close()
        connection.connect()
        for run_id in launch.runs.values_list("pk", flat=True):
            recording.cancel_run(run_id)
        for thread in threads:
            thread.over.wait()
        for run_id in launch.runs.values_list("pk", flat=True):
            batching.drop(run_id)
        raise


def open_runs(launch: Launch) -> QuerySet[Run]:
    """Return the launch's runs to which something may still happen."""
    return launch.runs.filter(state__in=OPEN)


def exit_code(runs: Sequence[Run]) -> int:
    """Return 0 when everything passed, else 1."""
    return 0 if all(run.outcome == "pass" for run in runs) else 1

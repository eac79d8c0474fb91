"""Store the generated history: bulk rows, with rollups and comparisons by the production code."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from evalhub.teams.models import Membership, Project
from evalhub.teams.roles import Role
from runs.compare.baselines import set_baseline
from runs.compare.comparison import compare_with_baseline
from runs.db import statements
from runs.models import Launch, Run, Target
from runs.models.run import Trigger
from runs.results.rollups import write_rollups
from runs.results.search.trial_search import facets_by_outcome
from runs.targets.import_targets import import_targets
from scenarios.commands import acting_user
from scenarios.imports import Imported, import_files
from scenarios.models import Guidance, ScenarioVersion
from tests.history.catalogue import JUDGE, SCENARIOS, TARGETS, TOOLS, bundle
from tests.history.preparing import PreparedRows, PreparedRun, prepare
from tests.history.second_process import map_ahead
from tests.history.story import GUIDANCE_STEPS, chapters

RUNS_AT_ONCE = 50
"""Runs per transaction."""
RUNS_AHEAD = 5
"""Runs prepared before they are stored."""
CACHE_KIB = 64 * 1024
"""SQLite's page cache while runs are stored: the indexes of a large history don't fit into the usual one."""
PIN_EVERY = 96
"""Runs between new baselines of a suite and target."""


@dataclass(frozen=True)
class DemoRows:
    """Rows that the runs refer to, indexed as in chapters."""

    project: Project
    uploads: dict[tuple[int, int], Imported]
    """By tool and suite version."""
    guidance: dict[tuple[int, int], Guidance]
    scenarios: dict[int, list[ScenarioVersion]]
    """By suite version's key, in order."""
    targets: list[Target]


def make_stage(project: Project, *, by: User | None) -> DemoRows:
    """Store suites in two versions, guidance in eight, and targets, each once."""
    uploads: dict[tuple[int, int], Imported] = {}
    guidance: dict[tuple[int, int], Guidance] = {}
    for place, tool in enumerate(TOOLS):
        for number in range(len(GUIDANCE_STEPS)):
            version = 1 if number < len(GUIDANCE_STEPS) * 0.6 else 2
            (stored,) = import_files(
                bundle(tool, version=version, guidance=number + 1), project=project, by=by
            )
            uploads[place, version] = stored
            if stored.guidance is not None:
                guidance[place, number] = stored.guidance
    scenarios = {
        stored.version.pk: [
            entry.scenario_version
            for entry in stored.version.entries.select_related("scenario_version").order_by("position")
        ]
        for stored in uploads.values()
    }
    return DemoRows(project, uploads, guidance, scenarios, _targets(project, by))


def _targets(project: Project, by: User | None) -> list[Target]:
    lines = [
        f"  - {{name: '{name}', provider: mock, response: generated, workers: 4}}" for name, _, _ in TARGETS
    ]
    import_targets(project, "\n".join(("targets:", *lines)).encode(), "targets.yaml", by=by)
    named = {target.name: target for target in Target.objects.filter(project=project)}
    return [named[name] for name, _, _ in TARGETS]


MARK = "Demo data"
"""Names of projects with demo data begin with it; no other project gets any."""


def make_history(
    slug: str = "demo-data",
    *,
    runs: int,
    trials: int,
    seed: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Store `runs` runs of `trials` trials each; call `progress` with the number stored after each batch.

    A second process prepares the rows of a large history. Raises `ValueError` for a project that may have real results.
    """
    by, now, done = acting_user(), timezone.now(), 0
    project, _ = Project.objects.get_or_create(slug=slug, defaults={"name": f"{MARK}: {slug}"[:120]})
    if not project.name.startswith(MARK):
        raise ValueError(f"The project '{slug}' may have real results. Choose another one.")
    if by is not None:
        Membership.objects.get_or_create(project=project, user=by, defaults={"role": Role.ADMIN})
    stage = make_stage(project, by=by)
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    with closing(_prepare_runs(runs, trials=trials, seed=seed, now=now)) as prepared:
        while done < runs:
            with transaction.atomic():
                for prepared_run in islice(prepared, RUNS_AT_ONCE):
                    _store_run(stage, prepared_run, by)
                    done += 1
            progress(done)


def _prepare_runs(runs: int, *, trials: int, seed: int, now: datetime) -> Generator[PreparedRun, None, None]:
    """Yield the runs, oldest first, prepared by a second process if they are many."""
    story = chapters(runs, seed=seed, now=now)
    prepare_chapter = partial(prepare, trials=trials, seed=seed)
    if runs <= RUNS_AT_ONCE:
        yield from map(prepare_chapter, story)
    else:
        yield from map_ahead(prepare_chapter, story, ahead=RUNS_AHEAD)


def _store_run(stage: DemoRows, prepared: PreparedRun, by: User | None) -> None:
    run = _run(stage, prepared, by)
    _store_trials(run, stage.scenarios[run.suite_version_id], prepared)
    _store_parts(run, prepared)
    write_rollups(run, is_new=True)
    compare_with_baseline(run, is_new=True)
    if prepared.chapter.number % PIN_EVERY < len(TOOLS) * len(TARGETS):
        set_baseline(run, by=by)


def _run(stage: DemoRows, prepared: PreparedRun, by: User | None) -> Run:
    chapter = prepared.chapter
    stored = stage.uploads[chapter.tool, chapter.version]
    guidance = stage.guidance[chapter.tool, chapter.guidance]
    launch = Launch.objects.create(
        project=stage.project,
        by=by,
        trigger=Trigger.CLI,
        request={"targets": [TARGETS[chapter.target][0]]},
        created=chapter.created,
    )
    return Run.objects.create(
        project=stage.project,
        launch=launch,
        suite_version=stored.version,
        suite=stored.suite,
        target=stage.targets[chapter.target],
        guidance=guidance,
        fingerprint={
            "tool": chapter.tool_version,
            "guidance": guidance.sha256[:8],
            "judge": JUDGE,
            "demo_data": True,
        },
        by=by,
        trigger=Trigger.CLI,
        **prepared.columns,
    )


def _store_trials(run: Run, versions: Sequence[ScenarioVersion], prepared: PreparedRun) -> None:
    scenarios = [(run.pk, version.pk, version.scenario_id) for version in versions]
    keys = [scenarios[at % SCENARIOS] for at in prepared.trials.places]
    _insert(prepared.trials, ("run", "scenario_version", "scenario"), keys)


def _store_parts(run: Run, prepared: PreparedRun) -> None:
    keys = list(run.trial_set.order_by("position").values_list("pk"))
    for part in prepared.parts:
        _insert(part, ("trial",), keys)
    facets = facets_by_outcome(run.pk, ("pass", "fail", "error"))
    rows = [(*key, facets[outcome]) for key, outcome in zip(keys, prepared.outcomes, strict=True)]
    _insert(prepared.entries, ("trial", "facets"), rows)


def _insert(rows: PreparedRows, names: tuple[str, ...], keys: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows with the named columns of their trial's keys, which are by the trial's position."""
    values = [(*keys[at], *own) for at, own in zip(rows.places, rows.values, strict=True)]
    statements.insert_storable(rows.model, (*names, *rows.names), values)

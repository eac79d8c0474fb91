"""Store the generated history: bulk rows, with rollups and comparisons by the production code."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import islice
from random import Random
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction

from evalhub.teams.models import Project
from evaluators.model import Judging
from runs.demo_data.catalogue import JUDGE, SCENARIOS, TAGS, TARGETS, TOOLS, bundle
from runs.demo_data.sessions import Session
from runs.demo_data.story import GUIDANCE_STEPS, Chapter, chapters, difficulties
from runs.demo_data.trials import DemoTrial, demo_trial
from runs.execution.trial_result import columns, judging_row, total_cost
from runs.models import (
    Artifact,
    CommandRecord,
    JudgingRecord,
    Launch,
    Run,
    SearchEntry,
    Target,
    TranscriptRecord,
    Trial,
)
from runs.models.run import RunState, Trigger
from runs.models.run_options import RunOptions
from runs.queue import statements
from runs.targets.import_targets import import_targets
from runs.warehouse.baselines import set_baseline
from runs.warehouse.comparison import compare_with_baseline
from runs.warehouse.rollups import write_rollups
from runs.warehouse.search_index import entry, facets_by_outcome
from scenarios.imports import Imported, import_files
from scenarios.models import Guidance, ScenarioVersion

RUNS_AT_ONCE = 20
"""Runs per transaction."""
CACHE_KIB = 64 * 1024
"""SQLite's page cache while runs are stored: the indexes of a large history don't fit into the usual one."""
PIN_EVERY = 96
"""Runs between new baselines of a suite and target."""


@dataclass(frozen=True)
class Stage:
    """Rows that the runs refer to, indexed as in chapters."""

    project: Project
    uploads: dict[tuple[int, int], Imported]
    """By tool and suite version."""
    guidance: dict[tuple[int, int], Guidance]
    scenarios: dict[int, list[ScenarioVersion]]
    """By suite version's key, in order."""
    targets: list[Target]
    difficulties: list[list[float]]


def make_stage(project: Project, *, seed: int, by: User | None) -> Stage:
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
    hard = [difficulties(place, seed=seed) for place in range(len(TOOLS))]
    return Stage(project, uploads, guidance, scenarios, _targets(project, by), hard)


def _targets(project: Project, by: User | None) -> list[Target]:
    lines = [
        f"  - {{name: '{name}', provider: mock, response: generated, workers: 4}}" for name, _, _ in TARGETS
    ]
    import_targets(project, "\n".join(("targets:", *lines)).encode(), "targets.yaml", by=by)
    named = {target.name: target for target in Target.objects.filter(project=project)}
    return [named[name] for name, _, _ in TARGETS]


def make_runs(
    stage: Stage,
    *,
    runs: int,
    trials: int,
    seed: int,
    by: User | None,
    now: datetime,
    progress: Callable[[int], None],
) -> None:
    """Store `runs` runs of `trials` trials each; call `progress` with the number stored after each batch."""
    rng = Random(seed)  # noqa: S311 (no secret)
    story = chapters(runs, seed=seed, now=now)
    done = 0
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    with _without_collecting():
        while batch := list(islice(story, RUNS_AT_ONCE)):
            with transaction.atomic():
                for chapter in batch:
                    _store_run(stage, chapter, trials, rng, by)
            done += len(batch)
            progress(done)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Collect no garbage: storing runs leaves none, and every collection would visit the cached sessions."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _store_run(stage: Stage, chapter: Chapter, number: int, rng: Random, by: User | None) -> Run:
    stored = stage.uploads[chapter.tool, chapter.version]
    versions = stage.scenarios[stored.version.pk]
    trials = [
        demo_trial(chapter, at % SCENARIOS, stage.difficulties[chapter.tool][at % SCENARIOS], rng)
        for at in range(number)
    ]
    run = _run(stage, chapter, trials, rng, by)
    keys = _store_trials(run, versions, trials)
    _store_parts(run, list(zip(keys, trials, strict=True)))
    write_rollups(run, is_new=True)
    compare_with_baseline(run, is_new=True)
    if chapter.number % PIN_EVERY < len(TOOLS) * len(TARGETS):
        set_baseline(run, by=by)
    return run


def _run(stage: Stage, chapter: Chapter, trials: Sequence[DemoTrial], rng: Random, by: User | None) -> Run:
    name, model, _ = TARGETS[chapter.target]
    stored = stage.uploads[chapter.tool, chapter.version]
    guidance = stage.guidance[chapter.tool, chapter.guidance]
    launch = Launch.objects.create(
        project=stage.project,
        by=by,
        trigger=Trigger.CLI,
        request={"targets": [name]},
        created=chapter.created,
    )
    return Run.objects.create(
        project=stage.project,
        launch=launch,
        suite_version=stored.version,
        suite=stored.suite,
        target=stage.targets[chapter.target],
        model=model,
        guidance=guidance,
        tool_version=chapter.tool_version,
        options=RunOptions(trials=max(1, len(trials) // SCENARIOS)).model_dump(mode="json"),
        fingerprint={
            "tool": chapter.tool_version,
            "guidance": guidance.sha256[:8],
            "judge": JUDGE,
            "demo_data": True,
        },
        branch="" if rng.random() < 0.8 else "feature/clearer-flags",
        commit=f"{rng.getrandbits(160):040x}",
        tags=rng.sample(TAGS, rng.randint(0, 2)),
        by=by,
        trigger=Trigger.CLI,
        created=chapter.created,
        started=chapter.created + timedelta(seconds=2),
        finished=chapter.created
        + timedelta(seconds=2 + sum(each.result.seconds or 0.0 for each in trials) / 8),
        **_totals(trials),
    )


def _totals(trials: Sequence[DemoTrial]) -> dict[str, Any]:
    """Return a closed run's totals."""
    outcomes = [each.result.outcome for each in trials]
    usages = [each.result.usage for each in trials if each.result.usage]
    return {
        "state": RunState.FINISHED,
        "outcome": "fail" if "fail" in outcomes else "error" if "error" in outcomes else "pass",
        "trials": len(trials),
        "passed": outcomes.count("pass"),
        "failed": outcomes.count("fail"),
        "errors": outcomes.count("error"),
        "cost_usd": sum(total_cost(each.result) or 0.0 for each in trials),
        "tokens_in": sum(usage.input for usage in usages),
        "tokens_out": sum(usage.output for usage in usages),
    }


def _store_trials(run: Run, versions: Sequence[ScenarioVersion], trials: Sequence[DemoTrial]) -> list[int]:
    """Store the trials as execution would; return their keys."""
    started = run.started
    rows = []
    for at, each in enumerate(trials):
        version = versions[at % SCENARIOS]
        values = columns(each.result) | {"starts": 1, "started": started, "finished": run.finished}
        place = {"index": at // SCENARIOS, "position": at}
        keys = {"run": run.pk, "scenario_version": version.pk, "scenario": version.scenario_id}
        rows.append({**statements.blank(Trial), **keys, **place, **values})
    statements.insert(Trial, rows)
    return list(run.trial_set.order_by("position").values_list("pk", flat=True))


def _store_parts(run: Run, trials: Sequence[tuple[int, DemoTrial]]) -> None:
    statements.insert(TranscriptRecord, [_transcript(pk, each) for pk, each in _with_sessions(trials)])
    commands = [row | {"trial": pk} for pk, each in _with_sessions(trials) for row in each.commands]
    statements.insert(CommandRecord, commands)
    judged = [
        judging_row(pk, score)
        for pk, each in trials
        for score in (each.result.evaluation.scores if each.result.evaluation else ())
        if score.judging
    ]
    statements.insert(JudgingRecord, judged)
    artifacts = [{"trial": pk, **vars(kept)} for pk, each in trials for kept in each.result.artifacts]
    statements.insert(Artifact, artifacts)
    facets = facets_by_outcome(run.pk, ("pass", "fail", "error"))
    statements.insert(SearchEntry, [_entry(pk, each, facets[each.result.outcome]) for pk, each in trials])


def _entry(pk: int, trial: DemoTrial, facets: str) -> dict[str, Any]:
    if trial.session is None:
        return entry(pk, facets, transcript=None, judgings=(), answer="", error=trial.result.error)
    judging = trial.judging
    judge = _judge_text(judging.reasoning, judging.negatives, judging.positives) if judging else ""
    return trial.session.texts | {"trial": pk, "facets": facets, "judge": judge}


@cache
def _judge_text(reasoning: str, negatives: tuple[str, ...], positives: tuple[str, ...]) -> str:
    judging = Judging(reasoning=reasoning, negatives=negatives, positives=positives)
    text: str = entry(0, "", transcript=None, judgings=[judging], answer="")["judge"]
    return text


def _with_sessions(trials: Sequence[tuple[int, DemoTrial]]) -> Iterator[tuple[int, Session]]:
    return ((pk, each.session) for pk, each in trials if each.session is not None)


def _transcript(pk: int, session: Session) -> dict[str, Any]:
    return {"trial": pk, "source": "events", "data": session.packed, "events": session.events}

"""Import other programs' results as closed runs, with rollups and comparisons."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evalhub.teams import audit
from evalhub.teams.models import Project
from runs.models import Launch, Run, Target, Trial
from runs.models.run import RunState, Trigger, run_with_uuid
from runs.models.target import IMPORTED
from runs.models.trial import TrialState
from runs.warehouse import comparison
from runs.warehouse.baselines import run_of_import
from runs.warehouse.external_results import ExternalRun, ExternalTrial, read_results
from runs.warehouse.rollups import write_rollups
from runs.warehouse.search_index import BATCH, index_trials
from scenarios.formats.parsed import ParsedSuite
from scenarios.imports import store_suite
from scenarios.models import ScenarioVersion, Suite, SuiteVersion
from scenarios.spec import ScenarioSpec


@transaction.atomic
def import_results(project: Project, content: bytes, file: str, *, by: User | None) -> tuple[Run, ...]:
    """Import a results file and return its runs, or the existing ones of an earlier import.

    Raises `RequestError` for a file without results and stores nothing.
    """
    # A concurrent import of the same content waits; rows that refer to the project don't.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    sha256 = hashlib.sha256(content).hexdigest()
    before = Run.objects.filter(project=project, trigger=Trigger.IMPORT, options__import__sha256=sha256)
    if before.exists():
        return tuple(before.order_by("pk"))
    parsed = read_results(content, file)
    launch = Launch.objects.create(project=project, by=by, trigger=Trigger.IMPORT, request={"file": file})
    runs = tuple(_store(launch, each, sha256) for each in parsed)
    audit.record(project, by, "results.import", file, runs=[run.pk for run in runs])
    return runs


def _store(launch: Launch, external: ExternalRun, sha256: str) -> Run:
    version = _suite_version(launch.project, external, launch.by)
    target, _ = Target.objects.get_or_create(
        project=launch.project,
        name=external.target[:120],
        defaults={"provider": IMPORTED, "definition": {"url": external.target}, "accepted": False},
    )
    now = timezone.now()
    outcomes = [trial.outcome for trial in external.trials]
    run = Run.objects.create(
        project=launch.project,
        launch=launch,
        suite_version=version,
        suite=version.suite,
        target=target,
        state=RunState.FINISHED,
        outcome=next((word for word in ("fail", "error", "pass") if word in outcomes), ""),
        options={
            "import": {"sha256": sha256, "run_id": external.external_id},
            "baseline": _baseline(launch, external),
        },
        fingerprint={"target": external.target, "provider": IMPORTED, "staleness": external.staleness},
        warnings=[*external.warnings, *external.staleness.get("warnings", [])],
        tool_version=str(external.staleness.get("tool_version") or ""),
        trials=len(outcomes),
        passed=outcomes.count("pass"),
        failed=outcomes.count("fail"),
        errors=outcomes.count("error"),
        by=launch.by,
        trigger=Trigger.IMPORT,
        started=external.started or now,
        finished=_finished(external, external.started or now),
    )
    _store_trials(run, version, external.trials)
    write_rollups(run)
    comparison.compare_with_baseline(run)
    return run


def _finished(external: ExternalRun, started: datetime) -> datetime:
    """Return when the last trial ended, else the time that sequential trials would have ended."""
    finished = [trial.finished for trial in external.trials if trial.finished]
    if finished:
        return max(finished)
    try:
        return started + timedelta(seconds=max(0.0, sum(trial.seconds or 0.0 for trial in external.trials)))
    except (OverflowError, ValueError):
        # Times in files may be invalid, such as an impossible year.
        return started


def _baseline(launch: Launch, external: ExternalRun) -> str:
    """Return the number of the baseline's run: by its UUID, else as it was imported; empty if none."""
    own = run_with_uuid(external.baseline)
    if own and own.project_id == launch.project_id:
        return str(own.pk)
    return str(run_of_import(launch.project_id, external.baseline) or "")


def _suite_version(project: Project, external: ExternalRun, by: User | None) -> SuiteVersion:
    """Return the stored version with all cases, else create one from the results."""
    keys = {trial.key for trial in external.trials}
    suite = Suite.objects.filter(project=project, name=external.suite).first()
    newest = suite.versions.first() if suite else None
    if newest is not None and keys <= set(newest.scenario_versions.values_list("scenario__key", flat=True)):
        return newest
    specs: dict[str, ScenarioSpec] = {}
    for trial in external.trials:
        specs.setdefault(
            trial.key, ScenarioSpec(key=trial.key, description=trial.description, prompt=trial.prompt)
        )
    parsed = ParsedSuite(external.suite, external.format, tuple(specs.values()), settings=external.config)
    return store_suite(parsed, project, by=by).version


def _store_trials(run: Run, version: SuiteVersion, trials: tuple[ExternalTrial, ...]) -> None:
    versions = {
        each.scenario.key: each
        for each in version.scenario_versions.select_related("scenario").defer("content")
    }
    seen: dict[str, int] = {}
    rows = []
    for position, trial in enumerate(trials):
        index = seen.get(trial.key, 0)
        seen[trial.key] = index + 1
        rows.append(_row(run, versions[trial.key], trial, index, position))
    stored = Trial.objects.bulk_create(rows, batch_size=500)
    for start in range(0, len(stored), BATCH):
        index_trials([trial.pk for trial in stored[start : start + BATCH]])


def _row(run: Run, version: ScenarioVersion, trial: ExternalTrial, index: int, position: int) -> Trial:
    return Trial(
        run=run,
        scenario_version=version,
        scenario_id=version.scenario_id,
        index=index,
        position=position,
        state=TrialState.FINISHED,
        outcome=trial.outcome,
        seconds=trial.seconds,
        answer=trial.answer,
        error=trial.error,
        error_kind=IMPORTED if trial.error else "",
        scores=list(trial.scores),
        detail={"tools_called": list(trial.tools_called)},
        started=run.started,
        finished=trial.finished or run.finished,
    )

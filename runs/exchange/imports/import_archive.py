"""Import the archives in which runs travel between evalhubs (`runs.exchange.results_files.archived_runs`), each run once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
from django.contrib.auth.models import User

from evalhub.teams.models import Project
from evaluators.model import Transcript
from runs.compare import comparison
from runs.errors import RequestError
from runs.exchange.imports.store_results import keep_target, stored_run, version_of_results
from runs.exchange.results_files.archived_runs import (
    COMMAND_COLUMNS,
    JUDGING_COLUMNS,
    MOMENTS,
    RUN_COLUMNS,
    TRIAL_COLUMNS,
    Archived,
    ArchivedArtifact,
    ArchivedGuidance,
    ArchivedRun,
    ArchivedTrial,
)
from runs.exchange.results_files.values import ExternalRun, ExternalTrial
from runs.models import (
    Launch,
    Run,
)
from runs.models.run import RunState, Trigger
from runs.results.comparability import CONTENTS, contents_json
from runs.results.files import artifacts
from runs.results.rollups import write_rollups
from runs.results.trial_rows import TrialParts, insert_trials
from scenarios.bundles import Bundle
from scenarios.formats.parsed import ScenarioFileError
from scenarios.imports import restore_version
from scenarios.models import Guidance, ScenarioVersion, Suite, SuiteVersion
from scenarios.storing import restore_documents, store_guidance


def store_archived(
    launch: Launch, archived: Archived, members: Mapping[str, bytes], sha256: str, by: User | None
) -> Run:
    """Store a run of an archive, with its suite, guidance, trials and artifacts. Requires a transaction."""
    run, trials = archived
    version, versions, is_exact = _suite_version(launch.project, archived, members, by)
    columns = {name: _value(name, run.columns[name]) for name in RUN_COLUMNS}
    baseline = stored_run(launch.project, run.baseline) if run.baseline else None
    stored = Run(
        **columns,
        project=launch.project,
        launch=launch,
        suite_version=version,
        suite=version.suite,
        target=keep_target(launch.project, run.target),
        guidance=_guidance(version.suite, run.guidance, by),
        by=launch.by,
        trigger=Trigger.IMPORT,
    )
    stored.options = {
        **run.columns["options"],
        "import": {"sha256": sha256, "run_id": run.uuid},
        "baseline": str(baseline.pk) if baseline else "",
    }
    # The looks name their run by its number in the other evalhub.
    stored.looks = [replace(each, against=baseline.pk).to_json() for each in run.looks] if baseline else []
    stored.retest_usd = run.retest_usd
    stored.retests = [each.to_json() for each in run.retests]
    if not is_exact:
        hashes = [(trial.scenario, trial.scenario_hash) for trial in trials]
        stored.fingerprint = {
            **stored.fingerprint,
            CONTENTS: contents_json(run.suite.sha256, hashes, by_id=False),
        }
    stored.save()
    _store_trials(stored, versions, trials, members)
    write_rollups(stored, is_new=True)
    if stored.state == RunState.FINISHED and not stored.error:
        comparison.compare_with_baseline(stored, is_new=True)
    return stored


def _value(name: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if name in MOMENTS and value else value


def _suite_version(
    project: Project, archived: Archived, members: Mapping[str, bytes], by: User | None
) -> tuple[SuiteVersion, dict[str, ScenarioVersion], bool]:
    """Return the run's version of its suite with scenarios by key, and whether its content is the same.

    It is read again from the files of its upload. Where these are missing, or another release reads them otherwise,
    the version is one that the results name or make.
    """
    suite = archived.run.suite
    version = find_archived_version(project, archived) or _restore_suite(project, archived.run, members, by)
    keys = {trial.scenario for trial in archived.trials}
    if version is not None and version.sha256 == suite.sha256:
        rows = version.scenario_versions.select_related("scenario").defer("content")
        scenarios = {each.scenario.key: each for each in rows}
        if keys <= scenarios.keys():
            return version, scenarios, True
    created, scenarios = version_of_results(project, as_external(archived), by)
    return created, scenarios, False


def find_archived_version(project: Project, archived: Archived) -> SuiteVersion | None:
    """Return the stored version of the suite with the content that a run was measured on."""
    suite = archived.run.suite
    versions = SuiteVersion.objects.filter(suite__project=project, suite__slug=suite.slug)
    return versions.filter(sha256=suite.sha256).select_related("suite").first()


def has_sources(run: ArchivedRun, members: Mapping[str, bytes]) -> bool:
    """Return whether an archive has every file of the upload of a run's suite."""
    return bool(run.suite.source) and all(f"files/{each.sha256}" in members for each in run.suite.source)


def _restore_suite(
    project: Project, run: ArchivedRun, members: Mapping[str, bytes], by: User | None
) -> SuiteVersion | None:
    archived = run.suite
    if not has_sources(run, members):
        return None
    files = {each.path: members[f"files/{each.sha256}"] for each in archived.source}
    marked = frozenset(each.path for each in archived.source if each.executable)
    existing = Suite.objects.filter(project=project, slug=archived.slug).first()
    # A run of an older version must not put the suite back to it.
    is_current = existing is None or not existing.runs.exclude(trigger=Trigger.IMPORT).exists()
    try:
        return restore_version(
            Bundle(archived.source_name or archived.name, files, marked),
            archived.slug,
            project=project,
            by=by,
            is_current=is_current,
        )
    except ScenarioFileError:
        return None


def as_external(archived: Archived) -> ExternalRun:
    """Return a run of an archive as results of another program, whose suite is made of its trials."""
    run = archived.run
    trials = tuple(
        ExternalTrial(
            key=trial.scenario,
            outcome=str(trial.columns["outcome"]),
            description=trial.description,
            prompt=trial.prompt,
        )
        for trial in archived.trials
    )
    return ExternalRun(
        run.suite.slug,
        run.suite.format,
        run.target,
        trials,
        suite_hash=run.suite.sha256,
        config=run.suite.config,
    )


def _guidance(suite: Suite, archived: ArchivedGuidance | None, by: User | None) -> Guidance | None:
    if archived is None:
        return None
    files = restore_documents(archived.files)
    laid = (archived.laid_file, archived.laid_path)
    return store_guidance(suite, files, by=by, name_if_new=archived.name, laid=laid)[0]


def _store_trials(
    run: Run,
    versions: Mapping[str, ScenarioVersion],
    trials: Sequence[ArchivedTrial],
    members: Mapping[str, bytes],
) -> None:
    ordered = sorted(trials, key=lambda each: each.columns["position"])
    insert_trials(run, [(_row(each, versions[each.scenario]), _parts_of(each, members)) for each in ordered])


def _row(trial: ArchivedTrial, version: ScenarioVersion) -> dict[str, Any]:
    columns = {name: _value(name, trial.columns[name]) for name in TRIAL_COLUMNS}
    return {
        **columns,
        "scenario_version": version.pk,
        "scenario": version.scenario_id,
        # Archives of 0.1.2 have no rounds.
        "round": trial.round or int(trial.is_retest),
        "is_retest": trial.is_retest,
    }


def _parts_of(trial: ArchivedTrial, members: Mapping[str, bytes]) -> TrialParts:
    return TrialParts(
        transcript=None if trial.transcript is None else msgspec.convert(trial.transcript, Transcript),
        answer=str(trial.columns["answer"]),
        error=str(trial.columns["error"]),
        commands=[{name: each[name] for name in COMMAND_COLUMNS} for each in trial.commands],
        judgings=[{name: _value(name, each[name]) for name in JUDGING_COLUMNS} for each in trial.judgings],
        artifacts=[_keep_artifact(each, members) for each in trial.artifacts],
    )


def _keep_artifact(artifact: ArchivedArtifact, members: Mapping[str, bytes]) -> dict[str, Any]:
    """Store an artifact's content, and return its row; one that was left out of the archive keeps its row."""
    content = members.get(f"artifacts/{artifact.sha256}")
    if content is not None:
        if hashlib.sha256(content).hexdigest() != artifact.sha256:
            raise RequestError(
                f"The artifact {artifact.name} of the archive is damaged. Export the run again."
            )
        artifacts.keep_content(artifact.name, content, artifact.media_type)
    return msgspec.to_builtins(artifact)  # type: ignore[no-any-return]  # a struct becomes a dictionary

"""Read a file of results, and say what importing it would store and what is stored already. Nothing is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evalhub.lib.value import Value
from evalhub.teams.models import Project
from runs.exchange.imports.import_archive import as_external, find_archived_version, has_sources
from runs.exchange.imports.import_results import read_merged, runs_of_file
from runs.exchange.imports.import_sessions import MOST_WARNINGS
from runs.exchange.imports.store_results import (
    find_version_of_results,
    stored_run,
    suite_of_results,
    target_name,
)
from runs.exchange.results_files.archived_runs import Archived
from runs.exchange.results_files.importers import ReadResults, read_results
from runs.exchange.results_files.values import ExternalRun, ExternalTrial, read_time
from runs.models import Run, Target
from scenarios.imports import preview
from scenarios.models import Suite, SuiteVersion
from scenarios.storing import content_hash


@dataclass(frozen=True)
class PreviewedRun(Value):
    """One run of a file, with what storing it would add."""

    suite: str
    format: str
    target: str
    model: str
    trials: int
    passed: int
    failed: int
    errors: int
    cancelled: int
    skipped: int
    """Cases that were not run, and so aren't trials."""
    scenarios: int
    transcripts: int
    """Trials with a transcript, from which layer 1 is computed."""
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    started: str | None
    finished: str | None
    stored: int | None
    """The number of the run, if it is stored already. It stays as it is."""
    is_new_suite: bool
    suite_version: int | None
    """The stored version that has its scenarios; null if importing it creates one."""
    new_scenarios: tuple[str, ...]
    """Keys that the stored suite does not have."""
    is_new_target: bool
    baseline: int | None
    """The stored run that the file names as its baseline."""
    notes: tuple[str, ...]
    """What could not be read, and what a reader of the figures must know."""


@dataclass(frozen=True)
class ResultsPreview:
    """What a file of results holds, and what importing it would store."""

    file: str
    sha256: str
    program: str
    version: str
    """Of the program or of its format; empty if the file doesn't say."""
    runs: tuple[PreviewedRun, ...]
    imported: tuple[int, ...] = ()
    """The runs of an earlier import of the same file."""

    @property
    def new(self) -> int:
        """The number of runs that importing it would store."""
        return 0 if self.imported else sum(each.stored is None for each in self.runs)

    @property
    def seal(self) -> str:
        """Return the token that confirms exactly this file and what it was compared with."""
        known = [
            [run.stored, run.is_new_suite, run.suite, run.suite_version, list(run.new_scenarios)]
            for run in self.runs
        ]
        return content_hash([self.sha256, self.imported, known])


def preview_results(project: Project, content: bytes, file: str) -> ResultsPreview:
    """Return what importing a file would store. About eight queries a run; writes nothing.

    Raises `RequestError` for a file without results, `ScenarioFileError` for a broken archive.
    """
    sha256 = hashlib.sha256(content).hexdigest()
    read = read_results(file, content)
    return _preview(project, read, file, sha256, runs_of_file(project, sha256))


def preview_merged(project: Project, files: Sequence[tuple[str, bytes]]) -> ResultsPreview:
    """Return what importing archives with their shards merged would store. Raises `RequestError`."""
    sha256 = hashlib.sha256(b"".join(content for _, content in files)).hexdigest()
    return _preview(project, read_merged(files), ", ".join(file for file, _ in files), sha256, ())


def _preview(
    project: Project, read: ReadResults, file: str, sha256: str, imported: tuple[Run, ...]
) -> ResultsPreview:
    runs = [_preview_external(project, each) for each in read.external]
    runs += [_preview_archived(project, each, read.members) for each in read.archived]
    return ResultsPreview(
        file, sha256, read.program, read.version, tuple(runs), tuple(run.pk for run in imported)
    )


def _preview_external(project: Project, run: ExternalRun) -> PreviewedRun:
    outcomes = [trial.outcome for trial in run.trials]
    costs = [trial.cost_usd for trial in run.trials if trial.cost_usd is not None]
    used = [trial.usage for trial in run.trials if trial.usage]
    suite, version = _place(project, run)
    return PreviewedRun(
        suite=suite.name if suite else run.suite,
        format=suite.format if suite else run.format,
        model=run.model,
        trials=len(outcomes),
        passed=outcomes.count("pass"),
        failed=outcomes.count("fail"),
        errors=outcomes.count("error"),
        cancelled=0,
        skipped=run.skipped,
        transcripts=sum(trial.transcript is not None for trial in run.trials),
        tokens_in=sum(each.input for each in used) if used else None,
        tokens_out=sum(each.output for each in used) if used else None,
        cost_usd=sum(costs) if costs else None,
        started=_text(run.started),
        finished=_text(max((trial.finished for trial in run.trials if trial.finished), default=None)),
        stored=_key(stored_run(project, run.external_id)),
        baseline=_key(stored_run(project, run.baseline)),
        notes=_first_of((*run.all_warnings, *_notes_of_trials(run.trials))),
        **_what_is_new(project, run.target, suite, version, [trial.key for trial in run.trials]),
    )


def _place(project: Project, run: ExternalRun) -> tuple[Suite | None, SuiteVersion | None]:
    """Return the stored suite and version that results belong to; None for what importing them creates."""
    if match := find_version_of_results(project, run):
        return match[0].suite, match[0]
    previewed = preview(suite_of_results(run), project)
    return previewed.suite, previewed.kept


def _preview_archived(project: Project, archived: Archived, members: Mapping[str, bytes]) -> PreviewedRun:
    run, trials = archived
    columns = run.columns
    version = find_archived_version(project, archived)
    suite = version.suite if version else Suite.objects.filter(project=project, slug=run.suite.slug).first()
    if version is None and not has_sources(run, members):
        # Without the files of its upload, the suite is made of the trials.
        suite, version = _place(project, as_external(archived))
    has_tokens = columns["tokens_in"] or columns["tokens_out"]
    same = ("model", "trials", "passed", "failed", "errors", "cancelled", "cost_usd")
    return PreviewedRun(
        **{name: columns[name] for name in same},
        suite=suite.name if suite else run.suite.name,
        format=suite.format if suite else run.suite.format,
        skipped=0,
        transcripts=sum(trial.transcript is not None for trial in trials),
        tokens_in=columns["tokens_in"] if has_tokens else None,
        tokens_out=columns["tokens_out"] if has_tokens else None,
        started=_text(read_time(columns["started"])),
        finished=_text(read_time(columns["finished"])),
        stored=_key(stored_run(project, run.uuid)),
        baseline=_key(stored_run(project, run.baseline)) if run.baseline else None,
        notes=_first_of(columns["warnings"]),
        **_what_is_new(project, run.target, suite, version, [trial.scenario for trial in trials]),
    )


def _text(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _key(run: Run | None) -> int | None:
    return run.pk if run else None


def _what_is_new(
    project: Project, target: str, suite: Suite | None, version: SuiteVersion | None, keys: Iterable[str]
) -> dict[str, Any]:
    known = set(suite.scenarios.values_list("key", flat=True)) if suite else set()
    unique = dict.fromkeys(keys)
    return {
        "target": target,
        "is_new_suite": suite is None,
        "suite_version": version.number if version else None,
        "scenarios": len(unique),
        "new_scenarios": tuple(key for key in unique if key not in known),
        "is_new_target": not Target.objects.filter(project=project, name=target_name(target)).exists(),
    }


def _notes_of_trials(trials: Iterable[ExternalTrial]) -> Iterator[str]:
    for trial in trials:
        for sentence in (*(trial.transcript.problems if trial.transcript else ()), *trial.warnings):
            yield f"{trial.key}: {sentence}"


def _first_of(sentences: Iterable[str]) -> tuple[str, ...]:
    unique = tuple(dict.fromkeys(sentences))
    left = len(unique) - MOST_WARNINGS
    return (*unique[:MOST_WARNINGS], *([f"{left} more."] if left > 0 else []))

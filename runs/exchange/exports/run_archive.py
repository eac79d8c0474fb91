"""Export runs as an archive that another evalhub reads back exactly (`runs.exchange.results_files.archived_runs`)."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec
from django.conf import settings

from evaluators.redaction import redact_json, redact_patterns
from runs.compare.looks import looks_of
from runs.compare.retests import retests_of
from runs.errors import RequestError
from runs.exchange.results_files.archived_runs import (
    COMMAND_COLUMNS,
    FORMAT,
    JUDGING_COLUMNS,
    MANIFEST,
    RUN_COLUMNS,
    TRIAL_COLUMNS,
    TRIALS_A_FILE,
    ArchivedArtifact,
    ArchivedFile,
    ArchivedGuidance,
    ArchivedRun,
    ArchivedSuite,
    ArchivedTrial,
    Manifest,
)
from runs.models import Run, Trial
from runs.models.run import OPEN
from runs.results.files.artifacts import StoredFileUnavailable, open_stored
from scenarios.archives import MAX_ARCHIVE_BYTES, MAX_FILE_BYTES
from scenarios.models import SuiteVersion
from scenarios.storing import blob_hash, unpack

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every entry: the same runs give the same archive."""
RELATED = ("suite", "suite_version__source", "target", "guidance", "baseline", "project")


def run_archive(numbers: Sequence[int]) -> bytes:
    """Return closed runs as an archive, oldest first. Secrets in results are redacted; suites are as uploaded.

    Raises `RequestError` for an open run, and for more than an import takes.
    """
    runs = list(Run.objects.select_related(*RELATED).filter(pk__in=numbers).order_by("pk"))
    for run in runs:
        if run.state in OPEN:
            raise RequestError(f"Run {run.pk} isn't finished, so it can't be exported yet. Wait for its end.")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        _write_runs(_Writer(archive), runs)
    content = buffer.getvalue()
    if len(content) > MAX_ARCHIVE_BYTES:
        raise RequestError(
            f"The archive has {len(content):,} bytes, and an import takes {MAX_ARCHIVE_BYTES:,}. Export fewer runs at once."
        )
    return content


class _Writer:
    """Writes each entry of an archive once."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._written: set[str] = set()

    def add(self, path: str, content: bytes) -> None:
        """Write an entry unless it is there already."""
        if path not in self._written:
            self._written.add(path)
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            self._archive.writestr(entry, content)


def _write_runs(writer: _Writer, runs: Sequence[Run]) -> None:
    archived = []
    for run in runs:
        archived.append(_run(writer, run))
        trials = _trials(writer, run)
        for number in range(0, run.trial_set.count(), TRIALS_A_FILE):
            some = b"".join(islice(trials, TRIALS_A_FILE))
            writer.add(f"trials/{run.shown_id}.{number:06}.jsonl", some)
    manifest = Manifest(FORMAT, settings.VERSION, archived)
    writer.add(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2))


def _run(writer: _Writer, run: Run) -> ArchivedRun:
    columns = {name: _plain(getattr(run, name)) for name in RUN_COLUMNS}
    # Where it was imported from is this evalhub's own matter, and so is the number of its baseline.
    columns["options"] = {
        name: value
        for name, value in run.options.items()
        if name
        not in (
            "import",
            "baseline",
            "baseline_note",
            "retest_arms",
        )
    }
    guidance = run.guidance
    return ArchivedRun(
        uuid=run.shown_id,
        suite=_suite(writer, run.suite_version),
        target=run.target.name,
        columns=redact_json(columns),
        guidance=ArchivedGuidance(
            guidance.sha256, guidance.name, guidance.files, guidance.laid_file, guidance.laid_path
        )
        if guidance is not None
        else None,
        baseline=run.baseline.shown_id if run.baseline else "",
        trials=run.trial_set.count(),
        looks=looks_of(run),
        retests=retests_of(run),
        retest_usd=run.retest_usd,
    )


def _suite(writer: _Writer, version: SuiteVersion) -> ArchivedSuite:
    suite, files = version.suite, []
    for file in unpack(bytes(version.source.archive)) if version.source else ():
        sha256 = blob_hash(file.content)
        writer.add(f"files/{sha256}", file.content)
        files.append(ArchivedFile(file.path, sha256, file.executable))
    return ArchivedSuite(
        suite.slug,
        suite.name,
        suite.format,
        version.sha256,
        version.number,
        version.source_name,
        files,
        config=version.config,
    )


def _trials(writer: _Writer, run: Run) -> Iterator[bytes]:
    trials = run.trial_set.select_related("scenario", "scenario_version", "transcript")
    for trial in trials.prefetch_related("commands", "judgings", "artifacts").iterator(TRIALS_A_FILE):
        yield msgspec.json.encode(_trial(writer, trial)) + b"\n"


def _trial(writer: _Writer, trial: Trial) -> ArchivedTrial:
    content, stored = trial.scenario_version.content, getattr(trial, "transcript", None)
    return ArchivedTrial(
        scenario=trial.scenario.key,
        scenario_hash=trial.scenario_version.sha256,
        columns=redact_json({name: _plain(getattr(trial, name)) for name in TRIAL_COLUMNS}),
        description=str(content.get("description") or ""),
        prompt=str(content.get("prompt") or ""),
        transcript=redact_json(msgspec.to_builtins(stored.unpack())) if stored else None,
        commands=[
            redact_json({name: getattr(command, name) for name in COMMAND_COLUMNS})
            for command in trial.commands.all()
        ],
        judgings=[
            redact_json({name: _plain(getattr(judging, name)) for name in JUDGING_COLUMNS})
            for judging in trial.judgings.all()
        ],
        artifacts=[
            _artifact(
                writer, ArchivedArtifact(artifact.name, artifact.sha256, artifact.size, artifact.media_type)
            )
            for artifact in trial.artifacts.all()
        ],
        round=trial.round,
        is_retest=trial.is_retest,
    )


def _artifact(writer: _Writer, artifact: ArchivedArtifact) -> ArchivedArtifact:
    """Write an artifact's content, redacted if it is text; leave it out if it is missing or too large."""
    if artifact.size > MAX_FILE_BYTES:
        return artifact
    try:
        with open_stored(artifact.sha256) as file:
            content: bytes = file.read()
    except StoredFileUnavailable:
        return artifact
    content = _redact_content(content)
    sha256 = hashlib.sha256(content).hexdigest()
    writer.add(f"artifacts/{sha256}", content)
    return ArchivedArtifact(artifact.name, sha256, len(content), artifact.media_type)


def _redact_content(content: bytes) -> bytes:
    try:
        return redact_patterns(content.decode()).encode()
    except UnicodeDecodeError:
        return content


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value

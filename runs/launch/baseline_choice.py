"""The baseline of a request: a stored run by number or UUID, or a file of results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from django.contrib.auth.models import User

from evalhub.lib.numbers import format_count
from evalhub.teams.models import Project
from runs.compare.baselines import LAST_PASS, check_choice
from runs.errors import RequestError
from runs.exchange.imports.import_results import import_results
from runs.exchange.imports.store_results import store_results, stored_run
from runs.exchange.results_files.archived_runs import Archived
from runs.exchange.results_files.importers import ReadResults, read_results
from runs.exchange.results_files.values import ExternalRun
from runs.models.run import has_too_many_errors
from runs.results.comparability import is_version
from scenarios.archives import MAX_FILE_BYTES, read_whole
from scenarios.commands import MAX_DOCUMENT_BYTES
from scenarios.formats.parsed import ScenarioFileError
from scenarios.models import SuiteVersion


def chosen_baseline(
    project: Project,
    choice: str,
    versions: Sequence[SuiteVersion],
    *,
    by: User | None,
    folder: str | None = None,
) -> tuple[str, str]:
    """Return the `baseline` and the `baseline_note` of a request for these versions. Raises `RequestError`.

    `choice` is empty, `last-pass`, a run's number or UUID, the `runId` of a result in `folder`, or a file of results.
    Results of a run that isn't stored are imported, so that the verdict is computed from their trials.
    """
    if choice in ("", LAST_PASS) or choice.isdecimal():
        check_choice(project.pk, choice)
        return choice, ""
    if stored := stored_run(project, choice):
        return _choose_run(project, stored.pk)
    path = Path(choice)
    if not path.is_file():
        file = _find_results_of(choice, sorted(Path(folder).glob("*.json")) if folder else ())
        if file is None:
            raise RequestError(
                f"There is no run '{choice}', and no file with results of that name or runId. For the baseline, give a "
                f"run's number or UUID, a file of results, or {LAST_PASS}."
            )
        path = file
    return _of_file(project, path, versions, by)


def _choose_run(project: Project, run: int) -> tuple[str, str]:
    check_choice(project.pk, str(run))
    return str(run), ""


def _of_file(
    project: Project, path: Path, versions: Sequence[SuiteVersion], by: User | None
) -> tuple[str, str]:
    """Return the baseline that a file's results are, stored where they aren't yet."""
    content = _content(path)
    read = _results(path, content)
    if read.archived:
        return _of_archive(project, path, content, read.archived, versions, by)
    version, external = _matching(path, read.external, versions)
    if stored := stored_run(project, external.external_id):
        return _choose_run(project, stored.pk)
    _check(path, external)
    sha256 = hashlib.sha256(content).hexdigest()
    (run,) = store_results(project, [external], path.name, sha256, by=by, version=version)
    return str(run.pk), _note(path, external, version)


def _of_archive(
    project: Project,
    path: Path,
    content: bytes,
    archived: Sequence[Archived],
    versions: Sequence[SuiteVersion],
    by: User | None,
) -> tuple[str, str]:
    """Return the newest run of an archive that has scenarios of a suite; none for several lines, which find their own."""
    keys = set[str]()
    for version in versions:
        keys.update(version.scenario_versions.values_list("scenario__key", flat=True))
    usable = [entry for entry in archived if keys & {trial.scenario for trial in entry.trials}]
    if not usable:
        raise RequestError(
            f"{path}: The baseline can't be used because it has none of the scenarios of "
            f"{', '.join(version.suite.name for version in versions)}. Choose an archive of this suite."
        )
    newest = max(
        usable,
        key=lambda entry: entry.run.columns["started"] or entry.run.columns["created"],
    ).run
    columns = newest.columns
    _check_outcomes(
        path, columns["state"] == "cancelled", columns["passed"], columns["failed"], columns["errors"]
    )
    import_results(project, content, path.name, by=by)
    if len({(entry.run.suite.slug, entry.run.target, entry.run.columns["model"]) for entry in usable}) > 1:
        return "", ""
    stored = stored_run(project, newest.uuid)
    return str(stored.pk) if stored else "", ""


def _content(path: Path) -> bytes:
    try:
        return read_whole(path, most=MAX_DOCUMENT_BYTES)
    except OSError as error:
        raise RequestError(
            f"{path}: The baseline can't be read: {error.strerror}. Check the file."
        ) from error


def _results(path: Path, content: bytes) -> ReadResults:
    try:
        return read_results(path.name, content)
    except (RequestError, ScenarioFileError) as error:
        problems = [error] if isinstance(error, RequestError) else error.problems
        raise RequestError(f"{path}: The baseline can't be used. {'; '.join(map(str, problems))}") from error


def _matching(
    path: Path, results: Sequence[ExternalRun], versions: Sequence[SuiteVersion]
) -> tuple[SuiteVersion, ExternalRun]:
    """Return the suite and the results that have the most scenarios in common. Raises `RequestError` if none have any."""
    keys = {
        version.pk: set(version.scenario_versions.values_list("scenario__key", flat=True))
        for version in versions
    }
    pairs = [(version, external) for external in results for version in versions]
    version, external = max(pairs, key=lambda pair: len(keys[pair[0].pk] & _keys(pair[1])))
    if not keys[version.pk] & _keys(external):
        few = ", ".join(sorted(_keys(external))[:3])
        raise RequestError(
            f"{path}: The baseline can't be used because it has none of the scenarios of {version.suite.name}; it has "
            f"{few}, among others. Choose results of this suite."
        )
    return version, external


def _keys(external: ExternalRun) -> set[str]:
    return {trial.key for trial in external.trials}


def _check(path: Path, external: ExternalRun) -> None:
    """Refuse results from which no verdict can be computed. Raises `RequestError`."""
    outcomes = [trial.outcome for trial in external.trials]
    _check_outcomes(path, external.cancelled, *(outcomes.count(word) for word in ("pass", "fail", "error")))


def _check_outcomes(path: Path, is_cancelled: bool, passed: int, failed: int, errors: int) -> None:
    if is_cancelled:
        raise RequestError(
            f"{path}: The baseline can't be used because its run was cancelled. Choose results of a finished run."
        )
    if has_too_many_errors(passed, failed, errors):
        raise RequestError(
            f"{path}: The baseline can't be used because {errors} of its {format_count(passed + failed + errors, 'trial')} hit "
            "errors, a third or more. Choose another one."
        )
    if not passed + failed:
        raise RequestError(f"{path}: The baseline can't be used because none of its trials passed or failed.")


def _note(path: Path, external: ExternalRun, version: SuiteVersion) -> str:
    """Return what a reader must know of the comparison; empty where the file says what it measured."""
    if is_version(external.suite_hash, version) or all(trial.scenario_hash for trial in external.trials):
        return ""
    return (
        f"{path.name} doesn't say which contents of its scenarios it measured, so they are compared by their ids. Exports "
        "of evalhub say it."
    )


def _find_results_of(run_id: str, files: Iterable[Path]) -> Path | None:
    """Return the file with the results of a runId; files without any are skipped."""
    for path in files:
        if path.stat().st_size > MAX_FILE_BYTES:
            continue
        try:
            results = _results(path, _content(path))
        except RequestError:
            continue
        if any(each.external_id == run_id for each in results.external):
            return path
    return None

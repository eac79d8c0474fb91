"""The baseline of a request: a stored run by number or UUID, or an EvalSuiteResult on disk."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evalhub.teams.models import Project
from runs.errors import RequestError
from runs.models.run import run_with_uuid
from runs.warehouse.baselines import LAST_PASS, check_choice, run_of_import
from scenarios.bundle_limits import MAX_FILE_BYTES, read_whole


def chosen_baseline(project: Project, choice: str, folder: str | None = None) -> dict[str, Any]:
    """Return the options of `RunOptions` for a baseline. Raises `RequestError`.

    `choice` is empty, `last-pass`, a run's number or UUID, the `runId` of a result in `folder`, or a result's file. A result
    of a stored run means that run; another one is compared by passed and failed alone (tool-forge eval runner, Baseline
    Diffing).
    """
    if choice in ("", LAST_PASS) or choice.isdecimal():
        check_choice(project.pk, choice)
        return {"baseline": choice}
    if stored := _stored(project, choice):
        return {"baseline": str(stored)}
    path = Path(choice)
    value = (
        _result(path)
        if path.is_file()
        else _named(choice, sorted(Path(folder).glob("*.json")) if folder else ())
    )
    if value is None:
        raise RequestError(
            f"There is no run '{choice}', and no file with results of that name or runId. For the baseline, give a "
            f"run's number or UUID, an EvalSuiteResult, or {LAST_PASS}."
        )
    run_id = str(value.get("runId") or "")
    if stored := _stored(project, run_id):
        return {"baseline": str(stored)}
    passed = {str(case["id"]): case.get("passed") is True for case in value["cases"]}
    return {"baseline_file": {"run_id": run_id or path.name, "passed": passed}}


def _stored(project: Project, run_id: str) -> int | None:
    """Return the key of the run with this UUID, or imported under this id."""
    own = run_with_uuid(run_id)
    return own.pk if own and own.project_id == project.pk else run_of_import(project.pk, run_id)


def _named(run_id: str, files: Iterable[Path]) -> dict[str, Any] | None:
    """Return the result with a runId among files; those that are none are skipped."""
    for path in files:
        if path.stat().st_size > MAX_FILE_BYTES:
            continue
        try:
            value = _result(path)
        except RequestError:
            continue
        if str(value.get("runId")) == run_id:
            return value
    return None


def _result(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_whole(path))
    except (OSError, ValueError) as error:
        raise RequestError(f"{path}: The baseline can't be read as JSON: {error}. Check the file.") from error
    cases = value.get("cases") if isinstance(value, dict) else None
    if not isinstance(cases, list) or not all(isinstance(case, dict) and case.get("id") for case in cases):
        raise RequestError(
            f"{path}: The baseline is no EvalSuiteResult: `cases` with ids are missing. Choose another file."
        )
    return dict(value)

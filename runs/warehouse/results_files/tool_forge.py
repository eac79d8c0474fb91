"""Results of tool-forge: one EvalSuiteResult a file."""

from __future__ import annotations

from typing import Any

from runs.errors import RequestError
from runs.warehouse.results_files.values import (
    ExternalRun,
    ExternalTrial,
    ResultsFile,
    count_of,
    key_of,
    list_of,
    moment_of,
    number_of,
    object_of,
    suite_name,
)


def read(given: ResultsFile) -> tuple[ExternalRun, ...]:
    """Return the run of an EvalSuiteResult."""
    if given.members or not isinstance(object_of(given.value).get("cases"), list):
        return ()
    return (_suite_result(given.value, given.name),)


def _suite_result(value: dict[str, Any], file: str) -> ExternalRun:
    cases = [case for case in value["cases"] if isinstance(case, dict) and case.get("id")]
    if not cases:
        raise RequestError(f"{file}: no case in `cases` has an `id`. Choose a complete EvalSuiteResult.")
    metadata = object_of(value.get("metadata"))
    return ExternalRun(
        suite=suite_name(value.get("toolName"), file),
        format="tool_forge",
        target=str(value.get("agentEndpoint") or "imported"),
        trials=tuple(_case(case) for case in cases),
        external_id=str(value.get("runId") or ""),
        baseline=str(value.get("baselineRunId") or ""),
        started=moment_of(value.get("timestamp")),
        config={"tier": value.get("tier"), "tool": value.get("toolName")},
        staleness={
            "warnings": [str(text) for text in list_of(value.get("stalenessWarnings"))],
            "stale": bool(value.get("stale")),
            "description_hash": metadata.get("descriptionHash"),
            "registry_size": metadata.get("registrySize"),
            "tool_version": metadata.get("toolVersion"),
        },
    )


def _case(case: dict[str, Any]) -> ExternalTrial:
    details = object_of(case.get("details"))
    passed, error = case.get("passed") is True, str(case.get("error") or "")
    broken = bool(details.get("infrastructure")) or error.startswith("agent error:")
    outcome = "pass" if passed else ("error" if broken else "fail")
    detail = {
        "error": "" if broken else error,
        "assertions_run": count_of(case.get("assertionsRun")),
        "assertions_skipped": count_of(case.get("assertionsSkipped")),
        "skipped_tokens": list(map(str, list_of(details.get("skippedTokens")))),
        "all_failures": list(map(str, list_of(details.get("allFailures")))),
        "vacuous": bool(details.get("vacuous")),
    }
    verdict = {
        "layer": "assertions",
        "name": "verdict",
        "value": float(passed),
        "passed": passed,
        "message": error or "All assertions passed.",
        "detail": detail,
    }
    return ExternalTrial(
        key=key_of(case["id"]),
        outcome=outcome,
        description=str(case.get("description") or ""),
        seconds=number_of(case.get("durationMs"), 1000),
        scores=() if broken else (verdict,),
        tools_called=tuple(map(str, list_of(details.get("toolsCalled")))),
        error=error.removeprefix("agent error:").strip() if broken else "",
    )

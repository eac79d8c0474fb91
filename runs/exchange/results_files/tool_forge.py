"""Results of tool-forge: one EvalSuiteResult a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from evalhub.lib.limits import LONGEST_NAME
from runs.errors import RequestError
from runs.exchange.results_files.values import (
    ExternalRun,
    ExternalTrial,
    ResultsFile,
    as_count,
    format_of_suite,
    key_of_text,
    list_of,
    number_of,
    object_of,
    read_time,
    suite_name,
)


def read(results_file: ResultsFile) -> tuple[ExternalRun, ...]:
    """Return the run of an EvalSuiteResult."""
    if results_file.members or not isinstance(object_of(results_file.value).get("cases"), list):
        return ()
    return (_suite_result(results_file.value, results_file.name),)


def _suite_result(value: dict[str, Any], file: str) -> ExternalRun:
    cases = [case for case in value["cases"] if isinstance(case, dict) and case.get("id")]
    if not cases:
        raise RequestError(f"{file}: no case in `cases` has an `id`. Choose a complete EvalSuiteResult.")
    metadata = object_of(value.get("metadata"))
    fields = object_of(value.get("evalhub"))
    return ExternalRun(
        suite=suite_name(fields.get("suite") or value.get("toolName"), file),
        format=format_of_suite(fields.get("format"), "tool_forge"),
        target=str(fields.get("target") or value.get("agentEndpoint") or "imported"),
        model=str(fields.get("model") or "")[:LONGEST_NAME],
        trials=tuple(_in_turn([_case(case, object_of(fields.get("scenarios"))) for case in cases])),
        external_id=str(value.get("runId") or ""),
        baseline=str(value.get("baselineRunId") or ""),
        started=read_time(value.get("timestamp")),
        config={"tier": value.get("tier"), "tool": value.get("toolName")},
        suite_hash=str(metadata.get("evalFileHash") or ""),
        guidance=str(fields.get("guidance") or ""),
        cancelled=fields.get("state") == "cancelled",
        staleness={
            "warnings": [str(text) for text in list_of(value.get("stalenessWarnings"))],
            "stale": bool(value.get("stale")),
            "description_hash": metadata.get("descriptionHash"),
            "registry_size": metadata.get("registrySize"),
            "tool_version": metadata.get("toolVersion"),
        },
    )


def _in_turn(cases: Sequence[Sequence[ExternalTrial]]) -> Iterator[ExternalTrial]:
    """Yield the first trials of all cases, then the second ones, as a run executes them."""
    for turn in zip_longest(*cases):
        yield from (trial for trial in turn if trial is not None)


def _case(case: dict[str, Any], hashes: dict[str, Any]) -> list[ExternalTrial]:
    """Return a case's trials: those that evalhub lists in its details, else the case as one."""
    listed = [
        trial for trial in list_of(object_of(case.get("details")).get("trials")) if isinstance(trial, dict)
    ]
    if not listed:
        return [_trial(case, case, object_of(case.get("details")), hashes)]
    return [_trial(case, each, each, hashes) for each in listed]


def _trial(
    case: dict[str, Any], result: dict[str, Any], details: dict[str, Any], hashes: dict[str, Any]
) -> ExternalTrial:
    passed, error = result.get("passed") is True, str(result.get("error") or "")
    broken = not passed and (bool(details.get("infrastructure")) or error.startswith("agent error:"))
    outcome = "pass" if passed else ("error" if broken else "fail")
    detail = {
        "error": "" if broken else error,
        "assertions_run": as_count(result.get("assertionsRun")),
        "assertions_skipped": as_count(result.get("assertionsSkipped")),
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
        key=key_of_text(case["id"]),
        outcome=outcome,
        description=str(case.get("description") or ""),
        seconds=number_of(result.get("durationMs"), 1000),
        scores=() if broken else (verdict,),
        tools_called=tuple(map(str, list_of(details.get("toolsCalled")))),
        error=error.removeprefix("agent error:").strip() if broken else "",
        scenario_hash=str(hashes.get(str(case["id"])) or ""),
    )

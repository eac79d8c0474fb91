"""Results of AgentV: one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from evalhub.lib.limits import LONGEST_NAME
from runs.exchange.results_files.values import (
    ExternalRun,
    ExternalTrial,
    ResultsFile,
    decode_storable_json,
    format_of_suite,
    key_of_text,
    list_of,
    moment_of,
    number_of,
    object_of,
    suite_name,
)


def read(given: ResultsFile) -> tuple[ExternalRun, ...]:
    """Return a run for each dataset and target, and run id of evalhub's own lines; other lines become a warning."""
    if given.members:
        return ()
    file = given.name
    records: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    bad: list[int] = []
    for number, line in enumerate(given.text.splitlines(), start=1):
        value = decode_storable_json(line)
        if isinstance(value, dict) and value.get("eval_id"):
            names = suite_name(value.get("dataset"), file), str(value.get("target") or "imported")
            place = (*names, str(value.get("run_id") or ""))
            records.setdefault(place, []).append(value)
        elif line.strip():
            bad.append(number)
    skipped = ", ".join(map(str, bad[:5])) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
    warnings = (f"{file}: skipped lines that are not results: {skipped}.",) if bad else ()
    return tuple(
        ExternalRun(
            suite,
            format_of_suite(own[0].get("suite_format"), "agentv"),
            target,
            tuple(_record(each) for each in own),
            external_id=run_id,
            model=str(own[0].get("model") or "")[:LONGEST_NAME],
            suite_hash=str(own[0].get("suite_hash") or ""),
            guidance=str(own[0].get("guidance_hash") or ""),
            started=_first(own),
            warnings=warnings,
        )
        for (suite, target, run_id), own in records.items()
    )


def _first(records: list[dict[str, Any]]) -> datetime | None:
    return min((at for at in (moment_of(each.get("timestamp")) for each in records) if at), default=None)


_BY_STATUS = {"ok": "pass", "quality_failure": "fail", "execution_error": "error"}
"""Outcomes by AgentV's `execution_status`, which decides where a row has one."""


def _record(value: dict[str, Any]) -> ExternalTrial:
    score, error = number_of(value.get("score"), 1) or 0.0, str(value.get("error") or "")
    own = value.get("outcome") if value.get("outcome") in ("pass", "fail", "error") else None
    # AgentV's own threshold may be below 1.
    reported = own or _BY_STATUS.get(str(value.get("execution_status")))
    outcome = reported or ("error" if error else "pass" if score >= 1.0 else "fail")
    request = object_of(value.get("agent_provider_request") or value.get("lm_provider_request"))
    hits, misses = list_of(value.get("hits")), list_of(value.get("misses"))
    aggregate = {
        "layer": "evaluators",
        "name": "score",
        "value": score,
        "passed": outcome == "pass",
        "message": _reason(score, outcome, is_reported=reported is not None),
        "detail": {"hits": hits, "misses": misses, "reasoning": value.get("reasoning") or ""},
    }
    return ExternalTrial(
        key=key_of_text(value["eval_id"]),
        outcome=outcome,
        prompt=str(request.get("question") or ""),
        answer=str(value.get("candidate_answer") or ""),
        seconds=number_of(value.get("seconds"), 1),
        finished=moment_of(value.get("timestamp")),
        scores=() if outcome == "error" else (aggregate, *_results(value)),
        tools_called=tuple(map(str, list_of(object_of(value.get("trace_summary")).get("toolNames")))),
        error=error,
        scenario_hash=str(value.get("scenario_hash") or ""),
    )


def _reason(score: float, outcome: str, *, is_reported: bool) -> str:
    if is_reported:
        return f"Score {score:.2f}, reported as {outcome}."
    return f"Score {score:.2f}, needs 1.00."


def _results(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in list_of(value.get("evaluator_results")):
        if isinstance(each, dict) and each.get("name"):
            yield {
                "layer": "evaluators",
                "name": str(each["name"]),
                "value": number_of(each.get("score"), 1),
                "message": str(each.get("reasoning") or ""),
                "weight": number_of(each.get("weight"), 1) or 1.0,
                "detail": {
                    "type": each.get("type"),
                    "verdict": each.get("verdict"),
                    "hits": list_of(each.get("hits")),
                    "misses": list_of(each.get("misses")),
                },
            }

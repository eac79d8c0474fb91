"""Parse other programs' results: tool-forge's EvalSuiteResult, AgentV's JSONL and promptfoo's JSON output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from runs.errors import RequestError
from runs.queue.statements import storable_json

LONGEST_NAME = 200


@dataclass(frozen=True)
class ExternalTrial:
    """One result of one case. Scores have a trial's shape."""

    key: str
    outcome: str
    description: str = ""
    prompt: str = ""
    answer: str = ""
    seconds: float | None = None
    finished: datetime | None = None
    scores: tuple[dict[str, Any], ...] = ()
    tools_called: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class ExternalRun:
    """One run of one suite on one target."""

    suite: str
    format: str
    target: str
    trials: tuple[ExternalTrial, ...]
    external_id: str = ""
    baseline: str = ""
    """External id of its baseline."""
    started: datetime | None = None
    config: dict[str, Any] = field(default_factory=dict)
    staleness: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def read_results(content: bytes, file: str) -> tuple[ExternalRun, ...]:
    """Return a results file's runs. Raises `RequestError` if it has none."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestError(f"{file}: not UTF-8 text. Choose a results file in JSON or JSON lines.") from error
    value = _json(text)
    if isinstance(value, dict) and isinstance(value.get("cases"), list):
        return (_suite_result(value, file),)
    if isinstance(value, dict) and (found := _list(_object(value.get("results")).get("results"))):
        return _promptfoo(value, [each for each in found if isinstance(each, dict)], file)
    runs = _agentv(text, file)
    if not runs:
        raise RequestError(
            f"{file}: no results found. Choose an EvalSuiteResult (JSON with `cases`), AgentV's results "
            "(JSON lines with `eval_id`) or promptfoo's output (JSON with `results`)."
        )
    return runs


def _json(text: str) -> Any:
    """Return JSON that every database can store; None if the text isn't JSON."""
    try:
        return json.loads(storable_json(json.loads(text)))
    except (ValueError, OverflowError, RecursionError):
        return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _suite_result(value: dict[str, Any], file: str) -> ExternalRun:
    cases = [case for case in value["cases"] if isinstance(case, dict) and case.get("id")]
    if not cases:
        raise RequestError(f"{file}: no case in `cases` has an `id`. Choose a complete EvalSuiteResult.")
    metadata = _object(value.get("metadata"))
    return ExternalRun(
        suite=_name(value.get("toolName"), file),
        format="tool_forge",
        target=str(value.get("agentEndpoint") or "imported"),
        trials=tuple(_case(case) for case in cases),
        external_id=str(value.get("runId") or ""),
        baseline=str(value.get("baselineRunId") or ""),
        started=_moment(value.get("timestamp")),
        config={"tier": value.get("tier"), "tool": value.get("toolName")},
        staleness={
            "warnings": [str(text) for text in _list(value.get("stalenessWarnings"))],
            "stale": bool(value.get("stale")),
            "description_hash": metadata.get("descriptionHash"),
            "registry_size": metadata.get("registrySize"),
            "tool_version": metadata.get("toolVersion"),
        },
    )


def _case(case: dict[str, Any]) -> ExternalTrial:
    details = _object(case.get("details"))
    passed, error = case.get("passed") is True, str(case.get("error") or "")
    broken = bool(details.get("infrastructure")) or error.startswith("agent error:")
    outcome = "pass" if passed else ("error" if broken else "fail")
    detail = {
        "error": "" if broken else error,
        "assertions_run": _count(case.get("assertionsRun")),
        "assertions_skipped": _count(case.get("assertionsSkipped")),
        "skipped_tokens": list(map(str, _list(details.get("skippedTokens")))),
        "all_failures": list(map(str, _list(details.get("allFailures")))),
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
        key=_key(case["id"]),
        outcome=outcome,
        description=str(case.get("description") or ""),
        seconds=_number(case.get("durationMs"), 1000),
        scores=() if broken else (verdict,),
        tools_called=tuple(map(str, _list(details.get("toolsCalled")))),
        error=error.removeprefix("agent error:").strip() if broken else "",
    )


def _agentv(text: str, file: str) -> tuple[ExternalRun, ...]:
    """Return a run for each dataset and target; other lines become a warning."""
    records: dict[tuple[str, str], list[dict[str, Any]]] = {}
    bad: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        value = _json(line)
        if isinstance(value, dict) and value.get("eval_id"):
            place = (_name(value.get("dataset"), file), str(value.get("target") or "imported"))
            records.setdefault(place, []).append(value)
        elif line.strip():
            bad.append(number)
    skipped = ", ".join(map(str, bad[:5])) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
    warnings = (f"{file}: skipped lines that are not results: {skipped}.",) if bad else ()
    return tuple(
        ExternalRun(
            suite,
            "agentv",
            target,
            tuple(_record(each) for each in own),
            started=_first(own),
            warnings=warnings,
        )
        for (suite, target), own in records.items()
    )


def _first(records: list[dict[str, Any]]) -> datetime | None:
    return min((at for at in (_moment(each.get("timestamp")) for each in records) if at), default=None)


def _record(value: dict[str, Any]) -> ExternalTrial:
    score, error = _number(value.get("score"), 1) or 0.0, str(value.get("error") or "")
    reported = value.get("outcome") if value.get("outcome") in ("pass", "fail", "error") else None
    outcome = reported or ("error" if error else "pass" if score >= 1.0 else "fail")
    request = _object(value.get("agent_provider_request") or value.get("lm_provider_request"))
    hits, misses = _list(value.get("hits")), _list(value.get("misses"))
    aggregate = {
        "layer": "evaluators",
        "name": "score",
        "value": score,
        "passed": outcome == "pass",
        "message": _reason(score, outcome, is_reported=reported is not None),
        "detail": {"hits": hits, "misses": misses, "reasoning": value.get("reasoning") or ""},
    }
    return ExternalTrial(
        key=_key(value["eval_id"]),
        outcome=outcome,
        prompt=str(request.get("question") or ""),
        answer=str(value.get("candidate_answer") or ""),
        seconds=_number(value.get("seconds"), 1),
        finished=_moment(value.get("timestamp")),
        scores=() if outcome == "error" else (aggregate, *_results(value)),
        tools_called=tuple(map(str, _list(_object(value.get("trace_summary")).get("toolNames")))),
        error=error,
    )


def _reason(score: float, outcome: str, *, is_reported: bool) -> str:
    if is_reported:
        return f"Score {score:.2f}, reported as {outcome}."
    return f"Score {score:.2f}, needs 1.00."


def _results(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in _list(value.get("evaluator_results")):
        if isinstance(each, dict) and each.get("name"):
            yield {
                "layer": "evaluators",
                "name": str(each["name"]),
                "value": _number(each.get("score"), 1),
                "message": str(each.get("reasoning") or ""),
                "weight": _number(each.get("weight"), 1) or 1.0,
                "detail": {
                    "type": each.get("type"),
                    "verdict": each.get("verdict"),
                    "hits": _list(each.get("hits")),
                    "misses": _list(each.get("misses")),
                },
            }


def _promptfoo(value: dict[str, Any], rows: list[dict[str, Any]], file: str) -> tuple[ExternalRun, ...]:
    """Return a run for each provider."""
    several = len({_count(row.get("promptIdx")) for row in rows}) > 1
    by_provider: dict[str, list[ExternalTrial]] = {}
    for row in rows:
        provider = _object(row.get("provider"))
        name = str(provider.get("label") or provider.get("id") or row.get("provider") or "imported")
        by_provider.setdefault(name, []).append(_promptfoo_trial(row, names_prompt=several))
    config, results = _object(value.get("config")), _object(value["results"])
    return tuple(
        ExternalRun(
            _name(config.get("description"), file),
            "promptfoo",
            provider,
            tuple(own),
            external_id=str(value.get("evalId") or ""),
            started=_moment(results.get("timestamp")),
        )
        for provider, own in by_provider.items()
    )


PROMPTFOO_ERROR = 2
"""promptfoo's `failureReason` of a test whose provider failed; 1 is a failed assertion."""


def _promptfoo_trial(row: dict[str, Any], *, names_prompt: bool) -> ExternalTrial:
    grading, error = _object(row.get("gradingResult")), str(row.get("error") or "")
    case, prompt = _object(row.get("testCase")), _object(row.get("prompt"))
    is_error = row.get("failureReason") == PROMPTFOO_ERROR or bool(error and not grading)
    outcome = "error" if is_error else "pass" if row.get("success") is True else "fail"
    name = str(case.get("description") or f"test {_count(row.get('testIdx')) + 1}")
    own = f", prompt {_count(row.get('promptIdx')) + 1}" if names_prompt else ""
    verdict: dict[str, Any] = {
        "layer": "assertions",
        "name": "verdict",
        "value": _number(row.get("score"), 1) or 0.0,
        "passed": outcome == "pass",
        "message": str(grading.get("reason") or error or ""),
    }
    parts: Iterator[dict[str, Any]] = (
        {
            "layer": "assertions",
            "name": str(_object(each.get("assertion")).get("type") or "assertion"),
            "value": _number(each.get("score"), 1),
            "passed": each.get("pass") is True,
            "message": str(each.get("reason") or ""),
        }
        for each in _list(grading.get("componentResults"))
        if isinstance(each, dict)
    )
    output = _object(row.get("response")).get("output")
    return ExternalTrial(
        key=_key(name + own),
        outcome=outcome,
        prompt=str(prompt.get("raw") or ""),
        answer=output if isinstance(output, str) else json.dumps(output) if output is not None else "",
        seconds=_number(row.get("latencyMs"), 1000),
        scores=() if is_error else (verdict, *parts),
        error=(error or "The provider failed.") if is_error else "",
    )


def _name(value: Any, file: str) -> str:
    """Return a suite's name, else that of the file up to its first dot."""
    return (str(value or "") or file.rsplit("/", 1)[-1].split(".")[0] or "results")[:LONGEST_NAME]


def _key(value: Any) -> str:
    key = str(value)
    if len(key) > LONGEST_NAME:
        raise RequestError(
            f"The id '{key[:40]}…' has {len(key)} characters. Shorten it to {LONGEST_NAME} at most."
        )
    return key


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _number(value: Any, divisor: int) -> float | None:
    return value / divisor if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _moment(value: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)

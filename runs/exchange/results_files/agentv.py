"""Results of AgentV: one JSON object a line, alone or as `index.jsonl` of a folder with answers and transcripts.

Rows until AgentV 2.5 have `eval_id` and pass with a score of 1, later ones `test_id` and pass from 0.8; where a row
says its `execution_status`, that decides.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from evalhub.lib.limits import LONGEST_NAME
from evaluators.model import Usage
from evaluators.transcripts.reading import decode_text
from evaluators.transcripts.traces import events_of_messages, read_trace
from runs.exchange.results_files.values import (
    ExternalRun,
    ExternalTrial,
    ResultsFile,
    as_count,
    decode_storable_json,
    format_of_suite,
    key_of_text,
    list_of,
    number_of,
    object_of,
    read_time,
    suite_name,
)

INDEX = "index.jsonl"
READ = (INDEX, "answer.md", "input.md", "transcript.jsonl")
"""Names of the files that are read in a folder."""
_INTERNAL = ".internal"
_BY_STATUS = {"ok": "pass", "quality_failure": "fail", "execution_error": "error"}
"""Outcomes by AgentV's `execution_status`, which decides where a row has one."""
_ATTEMPTS = ("trials", "attempts", "runs")
"""Where versions keep several attempts at a case, which the row's score sums up."""
_OF_EVERY_ATTEMPT = frozenset(
    (
        "eval_id",
        "test_id",
        "timestamp",
        "input",
        "agent_provider_request",
        "lm_provider_request",
        "scenario_hash",
    )
)
_FIRST_THRESHOLD, _LATER_THRESHOLD = 1.0, 0.8

_Row = tuple[dict[str, Any], Mapping[str, str]]
"""A line, and the texts of the files that it names, by the name of its key."""


def read(results_file: ResultsFile) -> tuple[ExternalRun, ...]:
    """Return a run for each suite and target, and run id of evalhub's own lines; other lines become a warning."""
    runs: dict[tuple[str, str, str], list[_Row]] = {}
    warnings: list[str] = []
    for file, text, texts in _indexes(results_file):
        for row in _rows(file, text, warnings):
            names = _suite_of(row, file), str(row.get("target") or "imported")
            place = (*names, str(row.get("run_id") or ""))
            named = ("answer_path", "output_path", "input_path", "transcript_path")
            runs.setdefault(place, []).append(
                (
                    row,
                    {
                        key: texts[row[key]]
                        for key in named
                        if isinstance(row.get(key), str) and row[key] in texts
                    },
                )
            )
    return tuple(_run(*place, own, warnings) for place, own in runs.items())


def _indexes(results_file: ResultsFile) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield each list of rows: its file, its text, and the other files of its run by their path in it."""
    if not results_file.members:
        yield results_file.name, results_file.text, {}
    for path, content in results_file.members.items():
        if PurePosixPath(path).name != INDEX:
            continue
        folder = posixpath.dirname(path)
        folder = posixpath.dirname(folder) if posixpath.basename(folder) == _INTERNAL else folder
        start = f"{folder}/" if folder else ""
        texts = {
            member.removeprefix(start): decode_text(content, "replace")
            for member, content in results_file.members.items()
            if member.startswith(start)
        }
        yield path, decode_text(content, "replace"), texts


def _rows(file: str, text: str, warnings: list[str]) -> Iterator[dict[str, Any]]:
    bad: list[int] = []
    count = 0
    for number, line in enumerate(text.splitlines(), start=1):
        # Decoding other lines takes seconds where there are millions.
        value = decode_storable_json(line) if '_id"' in line else None
        if isinstance(value, dict) and (value.get("eval_id") or value.get("test_id")):
            count += 1
            yield value
        elif line.strip():
            bad.append(number)
    if bad and not count:
        warnings.append(f"{file}: left out, because none of its lines is a result.")
    if bad and count:
        skipped = ", ".join(map(str, bad[:5])) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        warnings.append(f"{file}: skipped lines that are not results: {skipped}.")


def _suite_of(row: Mapping[str, Any], file: str) -> str:
    """Return the suite's name, else that of the eval file, else that of the results."""
    path = row.get("eval_path")
    eval_file = PurePosixPath(path).name.split(".")[0] if isinstance(path, str) else ""
    return suite_name(row.get("dataset") or row.get("suite") or eval_file, file)


def _run(suite: str, target: str, run_id: str, rows: Sequence[_Row], warnings: Sequence[str]) -> ExternalRun:
    first = rows[0][0]
    return ExternalRun(
        suite,
        format_of_suite(first.get("suite_format"), "agentv"),
        target,
        tuple(_trial(*attempt) for row, texts in rows for attempt in _attempts(row, texts)),
        external_id=run_id,
        model=str(first.get("model") or "")[:LONGEST_NAME],
        suite_hash=str(first.get("suite_hash") or ""),
        guidance=str(first.get("guidance_hash") or ""),
        started=_first([row for row, _ in rows]),
        warnings=tuple(warnings),
    )


def _attempts(row: dict[str, Any], texts: Mapping[str, str]) -> Iterator[_Row]:
    """Yield a row for each attempt at a case; what the row says of one is kept with the first that has its score."""
    attempts = next((found for name in _ATTEMPTS if (found := list_of(row.get(name)))), [])
    attempts = [each for each in attempts if isinstance(each, dict) and "score" in each]
    if len(attempts) < 2:
        yield row, texts
        return
    scores = [each["score"] for each in attempts]
    described = scores.index(row.get("score")) if row.get("score") in scores else len(attempts) - 1
    shared = {name: row[name] for name in _OF_EVERY_ATTEMPT if name in row}
    for index, attempt in enumerate(attempts):
        stated = {} if "execution_status" in attempt else {"outcome": attempt.get("verdict")}
        own = {**attempt, **stated}
        yield ({**row, **own}, texts) if index == described else ({**shared, **own}, {})


def _first(rows: Sequence[Mapping[str, Any]]) -> datetime | None:
    return min((at for at in (read_time(each.get("timestamp")) for each in rows) if at), default=None)


def _trial(row: dict[str, Any], texts: Mapping[str, str]) -> ExternalTrial:
    error = str(row.get("error") or "")
    threshold = _FIRST_THRESHOLD if row.get("eval_id") else _LATER_THRESHOLD
    score = number_of(row.get("score"), 1) or 0.0
    stated = row.get("outcome") if row.get("outcome") in ("pass", "fail", "error") else None
    reported = stated or _BY_STATUS.get(str(row.get("execution_status")))
    outcome = reported or ("error" if error else "pass" if score >= threshold else "fail")
    message = f"reported as {outcome}" if reported else f"needs {threshold:.2f}"
    hits, misses = _hits_and_misses(row)
    aggregate = {
        "layer": "evaluators",
        "name": "score",
        "value": score,
        "passed": outcome == "pass",
        "message": f"Score {score:.2f}, {message}.",
        "detail": {"hits": hits, "misses": misses, "reasoning": row.get("reasoning") or ""},
    }
    events = events_of_messages(map(decode_storable_json, texts.get("transcript_path", "").splitlines()))
    transcript = read_trace(events) if events else None
    request = object_of(row.get("agent_provider_request") or row.get("lm_provider_request"))
    evaluators = list_of(row.get("evaluator_results")) or list_of(row.get("scores"))
    answer = str(row.get("candidate_answer") or "") or _text(row.get("output"), last=True)
    return ExternalTrial(
        key=key_of_text(row.get("eval_id") or row["test_id"]),
        outcome=outcome,
        prompt=str(request.get("question") or "")
        or texts.get("input_path", "")
        or _text(row.get("input"), last=False),
        answer=answer or texts.get("answer_path") or texts.get("output_path") or "",
        seconds=_seconds(row),
        finished=read_time(row.get("timestamp")),
        scores=() if outcome == "error" else (aggregate, *_scores(evaluators)),
        tools_called=tuple(map(str, list_of(object_of(row.get("trace_summary")).get("toolNames")))),
        error=error,
        transcript=transcript,
        usage=_usage(object_of(row.get("token_usage"))),
        cost_usd=number_of(row.get("cost_usd"), 1),
        scenario_hash=str(row.get("scenario_hash") or ""),
    )


def _text(value: Any, *, last: bool) -> str:
    """Return a text, or the texts of messages; of those, only the last if asked."""
    if isinstance(value, str):
        return value
    contents = [one.get("content") for one in list_of(value) if isinstance(one, dict)]
    texts = [content for content in contents if isinstance(content, str) and content]
    return "\n\n".join(texts[-1:] if last else texts)


def _seconds(row: Mapping[str, Any]) -> float | None:
    reported = number_of(row.get("duration_ms"), 1000)
    return reported if reported is not None else number_of(row.get("seconds"), 1)


def _usage(value: Mapping[str, Any]) -> Usage | None:
    if not value:
        return None
    counts = {name: as_count(value.get(name)) for name in ("input", "output", "cached", "reasoning")}
    return Usage(
        counts["input"], counts["output"], cache_read=counts["cached"], reasoning=counts["reasoning"]
    )


def _hits_and_misses(value: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return what an evaluator found right and wrong: as lists, or as assertions that passed or not."""
    asserted = [one for one in list_of(value.get("assertions")) if isinstance(one, dict) and one.get("text")]
    passed = [str(one["text"]) for one in asserted if one.get("passed")]
    failed = [str(one["text"]) for one in asserted if not one.get("passed")]
    return list_of(value.get("hits")) + passed, list_of(value.get("misses")) + failed


def _scores(results: Sequence[Any], prefix: str = "") -> Iterator[dict[str, Any]]:
    """Yield the scores of evaluators, each before those of its members."""
    for result in results:
        if not isinstance(result, dict) or not result.get("name"):
            continue
        hits, misses = _hits_and_misses(result)
        name = f"{prefix}{result['name']}"
        yield {
            "layer": "evaluators",
            "name": name,
            "value": number_of(result.get("score"), 1),
            "message": str(result.get("reasoning") or "; ".join(map(str, (*misses, *hits)))),
            "weight": number_of(result.get("weight"), 1) or 1.0,
            "detail": {
                "type": result.get("type"),
                "verdict": result.get("verdict"),
                "hits": hits,
                "misses": misses,
            },
        }
        yield from _scores(list_of(result.get("scores")), f"{name}/")

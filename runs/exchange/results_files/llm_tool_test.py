"""Results of llm-tool-test: `results.jsonl`, or run folders with transcripts, as zip or folder.

Layer 1 is computed again from the transcripts. `metrics.json` is read in the program's shape and in that of its
specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from evaluators.grading.costs import PARTS
from evaluators.model import Transcript, Usage
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import UnreadableTranscript, parse
from evaluators.transcripts.reading import decode_text
from runs.exchange.results_files.values import (
    ExternalRun,
    ExternalTrial,
    ResultsFile,
    as_count,
    decode_storable_json,
    key_of_text,
    list_of,
    number_of,
    object_of,
    read_time,
)

SUITE = "llm-tool-test"
RESULTS, RUN, METRICS = "results.jsonl", "run.json", "metrics.json"
EVENTS, RAW = "events.jsonl", "transcript.raw.txt"
READ = (RESULTS, RUN, METRICS, EVENTS, RAW)
"""Names of the files that are read."""
_PARSERS = {"opencode": "opencode", "claude-code": "claude_code", "claude": "claude_code", "codex": "codex"}
"""Readers of an agent's own stream, by llm-tool-test's name of the agent."""
_LAYOUT = "artifacts"
"""The folder of a run's transcript; the specification has it in the run's folder."""
FIXTURE = "fixture"
"""The folder of the agent's files as it left them."""


class _Record(NamedTuple):
    """One executed scenario: its line of results.jsonl, `run.json` and `metrics.json`, as far as they exist."""

    values: dict[str, Any]
    metrics: dict[str, Any]
    transcript: Transcript | None


def read(results_file: ResultsFile) -> tuple[ExternalRun, ...]:
    """Return a run for each suite, tool and model; broken lines and files become warnings."""
    warnings: list[str] = []
    members = _without_workspaces(results_file.members)
    records = list(_folders(members, warnings)) if members else list(_lines(results_file, warnings))
    if records and not any(each.transcript for each in records):
        warnings.append(
            f"{results_file.name}: no transcripts, so layer 1 is not measured. Import the results folder, or a zip of it."
        )
    runs: dict[tuple[str, str, str, str], list[_Record]] = {}
    for record in records:
        names = (record.values.get(name) for name in ("suite", "tool", "model", "run"))
        suite, tool, model, run = (str(name or "") for name in names)
        runs.setdefault((suite or SUITE, tool or "imported", model, run), []).append(record)
    return tuple(
        _run(suite, tool, "" if model == "default" else model, group, warnings)
        for (suite, tool, model, _), group in runs.items()
    )


def _run(suite: str, tool: str, model: str, records: list[_Record], warnings: list[str]) -> ExternalRun:
    records.sort(key=lambda each: str(each.values.get("timestamp") or ""))
    versions = dict.fromkeys(str(each.values.get("target_tool_version") or "") for each in records)
    return ExternalRun(
        suite=suite[:200],
        format="llm_tool_test",
        target=tool[:120],
        model=model[:200],
        trials=tuple(_trial(each) for each in records),
        tool_version=next(iter(versions)) if len(versions) == 1 else "",
        started=min(
            (at for each in records if (at := read_time(each.values.get("timestamp")))), default=None
        ),
        warnings=tuple(warnings),
    )


def _lines(results_file: ResultsFile, warnings: list[str]) -> Iterator[_Record]:
    for values in _results(results_file.name, results_file.text, warnings):
        yield _Record(values, object_of(values.get("metrics")), None)


def _results(file: str, text: str, warnings: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the results of lines, without dry runs."""
    bad, dry = list[int](), 0
    results = list[dict[str, Any]]()
    for number, line in enumerate(text.splitlines(), start=1):
        # Decoding other lines takes seconds where there are millions.
        value = decode_storable_json(line) if '"scenario_id"' in line else None
        if isinstance(value, dict) and value.get("scenario_id"):
            is_dry = str(value.get("outcome")).lower().startswith("dry")
            dry += is_dry
            results += [] if is_dry else [value]
        elif line.strip():
            bad.append(number)
    if results and bad:
        warnings.append(f"{file}: skipped lines that are not results: {', '.join(map(str, bad[:5]))}.")
    if dry:
        warnings.append(f"{file}: skipped {dry} dry run{'s' * (dry != 1)}.")
    yield from results


def _folders(members: Mapping[str, bytes], warnings: list[str]) -> Iterator[_Record]:
    """Yield the runs of all folders with a `run.json`, with what results.jsonl says of them."""
    listed: dict[str, dict[str, Any]] = {}
    for path in (each for each in members if PurePosixPath(each).name == RESULTS):
        for value in _results(path, decode_text(members[path], "replace"), warnings):
            place = PurePosixPath(str(value.get("transcript_path") or "").replace("\\", "/"))
            listed[place.parent.name if place.name == _LAYOUT else place.name] = value
    order = {folder: number for number, folder in enumerate(listed)}
    paths = [each for each in members if PurePosixPath(each).name == RUN]
    for path in sorted(paths, key=lambda each: (order.get(_run_folder(each).name, len(order)), each)):
        values = decode_storable_json(decode_text(members[path], "replace"))
        if not isinstance(values, dict) or not values.get("scenario_id"):
            warnings.append(f"{path}: not a run of llm-tool-test; skipped.")
            continue
        folder = _run_folder(path)
        values = {**listed.get(folder.name, {}), **values}
        metrics = decode_storable_json(decode_text(members.get(str(folder / METRICS), b""), "replace"))
        transcript = _transcript(members, folder, str(values.get("tool")), warnings)
        yield _Record(values, object_of(metrics) or object_of(values.get("metrics")), transcript)


def _without_workspaces(members: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the members without the agents' files, which are in `fixture/` beside `artifacts/`."""
    runs = {path.partition(f"/{_LAYOUT}/")[0] for path in members if f"/{_LAYOUT}/" in path}
    return {path: content for path, content in members.items() if _workspace_of(path) not in runs}


def _workspace_of(path: str) -> str | None:
    """Return the folder whose `fixture/` a path lies in; None for other paths."""
    folder, within, _ = path.partition(f"/{FIXTURE}/")
    return folder if within else None


def _run_folder(path: str) -> PurePosixPath:
    inside = PurePosixPath(path).parent
    return inside.parent if inside.name == _LAYOUT else inside


def _transcript(
    members: Mapping[str, bytes], folder: PurePosixPath, tool: str, warnings: list[str]
) -> Transcript | None:
    raw, events = (
        next((members[path] for at in (folder / _LAYOUT, folder) if (path := str(at / name)) in members), b"")
        for name in (RAW, EVENTS)
    )
    if not raw.strip() and not events.strip():
        return None
    for parser in filter(None, (_PARSERS.get(tool), "plain_text")):
        try:
            return parse(parser, raw, events or None)
        except UnreadableTranscript as error:
            if parser == "plain_text":
                warnings.append(f"{folder}: the transcript can't be read: {error}")
    return None


def _trial(record: _Record) -> ExternalTrial:
    values, metrics = record.values, record.metrics
    tokens, target = object_of(values.get("token_usage")), object_of(values.get("target"))
    gates = tuple(_gates(metrics))
    outcome, error = _outcome(str(values.get("outcome") or metrics.get("outcome") or ""), gates)
    seconds = number_of(values.get("duration_secs", metrics.get("duration_secs")), 1)
    began = read_time(values.get("timestamp"))
    cost = values.get("cost_estimate_usd", values.get("cost_usd", metrics.get("cost_usd")))
    exit_code = values.get("exit_code")
    is_known = isinstance(exit_code, int) and not isinstance(exit_code, bool)
    timed_out = values.get("timed_out") is True
    transcript = record.transcript
    binary, pattern = (str(target.get(name) or "") for name in ("binary", "command_pattern"))
    return ExternalTrial(
        key=key_of_text(values["scenario_id"]),
        outcome=outcome,
        answer=str(values.get("answer") or (transcript.answer if transcript else "")),
        seconds=seconds,
        finished=_after(began, seconds or 0.0),
        scores=()
        if outcome == "error"
        else (*gates, *_judge(values, metrics, gates, outcome), *_scripts(metrics)),
        error=error,
        transcript=transcript,
        tool=Tool(binary=binary, command_pattern=pattern) if binary or pattern else None,
        completed=(exit_code == 0 and not timed_out) if is_known or timed_out else None,
        exit_code=exit_code if is_known else None,
        timed_out=timed_out,
        usage=_usage(tokens) if tokens else None,
        cost_usd=number_of(cost, 1),
        composite=number_of(metrics.get("composite_score"), 1),
    )


def _usage(tokens: dict[str, Any]) -> Usage:
    """Return the tokens of a record; evalhub's own exports have their parts."""
    parts = {name: as_count(tokens.get(name)) for name in PARTS}
    return Usage(
        as_count(tokens.get("input")),
        as_count(tokens.get("output")),
        estimated=False,
        output_unknown=False,
        **parts,
    )


def _after(began: datetime | None, seconds: float) -> datetime | None:
    try:
        return began + timedelta(seconds=seconds) if began else None
    except (OverflowError, ValueError):
        return began


def _gates(metrics: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for gate in list_of(metrics.get("details", metrics.get("gate_results"))):
        if isinstance(gate, dict):
            passed = gate.get("passed") is True
            name = str(gate.get("gate_type") or gate.get("type") or "gate")
            message = str(gate.get("message") or gate.get("detail") or "")
            yield {
                "layer": "gates",
                "name": re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower(),
                "value": float(passed),
                "passed": passed,
                "message": message,
            }


def _outcome(word: str, gates: tuple[dict[str, Any], ...]) -> tuple[str, str]:
    """Return the outcome, and the reason of an error."""
    kind, _, reason = word.partition(":")
    if kind.lower() in ("pass", "fail"):
        return kind.lower(), ""
    if kind.lower() == "error":
        return "error", reason.strip() or "llm-tool-test reported an error."
    return ("pass" if all(each["passed"] for each in gates) else "fail"), ""


def _judge(
    values: dict[str, Any], metrics: dict[str, Any], gates: tuple[dict[str, Any], ...], outcome: str
) -> Iterator[dict[str, Any]]:
    score = number_of(values.get("judge_score", metrics.get("judge_score")), 1)
    if score is None:
        score = number_of(metrics.get("judge_score"), 1)
    if score is None:
        return
    passed = metrics.get("judge_passed")
    if not isinstance(passed, bool):
        # Gates that all passed leave the decision to the judge.
        passed = outcome == "pass" if all(each["passed"] for each in gates) else None
    yield {"layer": "judge", "name": "judge", "value": score, "passed": passed}


def _scripts(metrics: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for result in list_of(metrics.get("evaluator_results")):
        if isinstance(result, dict) and result.get("name"):
            yield {
                "layer": "scripts",
                "name": str(result["name"]),
                "value": number_of(result.get("score"), 1),
                "message": str(result.get("summary") or result.get("error") or ""),
                "detail": {"metrics": object_of(result.get("metrics"))},
            }

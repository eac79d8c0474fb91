"""Export runs in the Common Test Report Format (CTRF 0.1, https://ctrf.io/docs/specification/root)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from django.conf import settings

from evaluators.model import Json
from runs.exchange.exports.document import first_trials
from runs.results.failure_reasons import error_of_unmeasured, reason_without_outcome, trial_reasons

SPEC_VERSION = "0.1.0"
STATUSES = {"pass": "passed", "fail": "failed", "error": "other", None: "pending"}
"""CTRF's status by outcome. An error is not the agent's fault, so it is not `failed`."""
CANCELLED = "skipped"

_Document = Mapping[str, Any]


def ctrf_json(documents: Sequence[_Document]) -> str:
    """Return run documents as one CTRF report with a test per trial, as text."""
    return json.dumps(ctrf(documents), indent=2, ensure_ascii=False) + "\n"


def ctrf(documents: Sequence[_Document]) -> dict[str, Json]:
    """Return run documents as one CTRF report.

    Trials are repeats, not retries, so each is a test of its own. A passed trial is flaky if another trial of its
    scenario failed in the same run.
    """
    tests = [test for document in documents for test in _tests(document)]
    return {
        "reportFormat": "CTRF",
        "specVersion": SPEC_VERSION,
        "generatedBy": f"evalhub {settings.VERSION}",
        "results": {
            "tool": {"name": "evalhub", "version": settings.VERSION},
            "summary": _summary([document["run"] for document in documents], tests),
            "tests": tests,
            "environment": _environment([document["run"] for document in documents]),
            "extra": {"runs": [_run(document["run"]) for document in documents]},
        },
    }


def _summary(runs: Sequence[_Document], tests: Sequence[Mapping[str, Any]]) -> dict[str, Json]:
    statuses = Counter(test["status"] for test in tests)
    names = (*dict.fromkeys(STATUSES.values()), CANCELLED)
    starts = [_milliseconds(run["started"] or run["created"]) for run in runs]
    stops = [_milliseconds(run["finished"] or run["started"] or run["created"]) for run in runs]
    start, stop = min(starts, default=0), max(stops, default=0)
    return {
        "tests": len(tests),
        **{name: statuses[name] for name in names},
        "flaky": sum(test.get("flaky", False) for test in tests),
        "suites": len({run["suite"] for run in runs}),
        "start": start,
        "stop": stop,
        "duration": stop - start,
    }


def _tests(document: _Document) -> list[dict[str, Any]]:
    run, trials = document["run"], first_trials(document)
    outcomes: defaultdict[str, set[str | None]] = defaultdict(set)
    for trial in trials:
        outcomes[trial["scenario"]].add(trial["outcome"])
    return [_test(run, trial, is_mixed={"pass", "fail"} <= outcomes[trial["scenario"]]) for trial in trials]


def _test(run: _Document, trial: _Document, *, is_mixed: bool) -> dict[str, Any]:
    outcome = trial["outcome"]
    name = trial["scenario"] + (f" #{trial['index'] + 1}" if trial["index"] else "")
    unmeasured = error_of_unmeasured(run, trial)
    fields = {
        "id": _identifier(run, trial),
        "name": name,
        "status": _status(trial, unmeasured),
        "rawStatus": outcome or trial["state"],
        "duration": round((trial["seconds"] or 0.0) * 1000),
        "suite": [run["suite"], run["target"]],
        "message": _message(trial, unmeasured) or None,
        "tags": list(run["tags"]) or None,
        "flaky": True if is_mixed and outcome == "pass" else None,
        "extra": _trial(run, trial),
    }
    return {field: value for field, value in fields.items() if value is not None}


def _status(trial: _Document, unmeasured: str) -> str:
    if unmeasured:
        return STATUSES["error"]
    return CANCELLED if trial["state"] == "cancelled" else STATUSES[trial["outcome"]]


def _message(trial: _Document, unmeasured: str) -> str:
    if trial["state"] == "cancelled":
        return unmeasured or reason_without_outcome(trial)
    return "\n".join(trial_reasons(trial)) if trial["outcome"] in ("fail", "error") else ""


def _identifier(run: _Document, trial: _Document) -> str:
    """Return a trial's id, which is the same in every run of the suite on the target with the model."""
    parts = (run["suite"], run["target"], run["model"] or "", trial["scenario"], str(trial["index"]))
    return str(uuid5(NAMESPACE_URL, json.dumps(["evalhub", *parts])))


def _trial(run: _Document, trial: _Document) -> dict[str, Json]:
    """Return what evalhub knows beyond CTRF's fields; costs in US dollars, scores from 0 to 1."""
    fields = {
        "run": run["id"],
        "trial": trial["id"],
        "scenario": trial["scenario"],
        "index": trial["index"],
        "seconds": trial["seconds"],
        "costUsd": trial["cost_usd"],
        "composite": trial["composite"],
        "timedOut": trial["timed_out"],
        "exitCode": trial["exit_code"],
        "gates": [{"type": gate["type"], "passed": gate["passed"]} for gate in trial["gates"]],
        "scores": [
            {
                "layer": score["layer"],
                "name": score["name"],
                "value": score["value"],
                "passed": score["passed"],
            }
            for score in trial["scores"]
            if score["layer"] != "gates"
        ],
    }
    return {name: value for name, value in fields.items() if value is not None}


def _run(run: _Document) -> dict[str, Json]:
    names = {
        "id": "id",
        "url": "url",
        "suite": "suite",
        "suiteVersion": "suite_version",
        "target": "target",
        "model": "model",
        "guidance": "guidance_name",
        "toolVersion": "tool_version",
        "state": "state",
        "outcome": "outcome",
        "baseline": "baseline",
        "verdict": "verdict",
        "verdictReason": "verdict_reason",
        "costUsd": "cost_usd",
        "error": "error",
        "warnings": "warnings",
    }
    return {name: run[column] for name, column in names.items() if run[column] not in (None, "")}


def _environment(runs: Sequence[_Document]) -> dict[str, Json]:
    """Return where the runs come from; only what all of them share."""
    shared = {
        "branchName": _shared_value(run["branch"] for run in runs),
        "commit": _shared_value(run["commit"] for run in runs),
        "appVersion": _shared_value(run["tool_version"] for run in runs),
    }
    return {name: value for name, value in shared.items() if value}


def _shared_value(values: Iterable[str | None]) -> str | None:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)

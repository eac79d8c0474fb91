"""Translates the cases of tool-forge to the functions that the product itself uses."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec

from evaluators.grading.assertions import VERDICT
from evaluators.grading.evaluate import evaluate
from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.stub_loop import MAX_TURNS, ModelCall, ModelTurn, run_stubs
from evaluators.grading.suite_result import compare_passes
from evaluators.grading.template_tokens import TokenSources, resolve_tokens
from evaluators.model import Event, Transcript, Usage
from evaluators.statistics.descriptive import wilson_interval
from evaluators.statistics.staleness import RegisteredTool, Registry, check_staleness, description_hash
from scenarios.formats import parse_files
from scenarios.formats.parsed import ScenarioFileError

_FILE = "cases.labeled.json"


def _load(file: Any) -> Any:
    try:
        (suite,) = parse_files({_FILE: json.dumps(file).encode()}, name="cases")
    except ScenarioFileError as error:
        return {"error": str(error)}
    return {"metadata": suite.settings["metadata"], "cases": len(suite.scenarios)}


def _token(given: Any) -> Any:
    found = resolve_tokens(given["value"], TokenSources(given["seed"], given["snapshot"]))
    return {"unresolved": True} if found.text is None else {"resolved": found.text}


def _staleness(given: Any) -> Any:
    tools = {name: RegisteredTool(**tool) for name, tool in given["registry"]["tools"].items()}
    found = check_staleness(given["metadata"], Registry(given["registry"]["size"], tools))
    return {"warnings": list(found.warnings), "stale": found.stale}


def _case(given: Any) -> Any:
    file = json.dumps([given["case"]]).encode()
    (suite,) = parse_files({_FILE: file}, name="cases")
    done = evaluate(suite.scenarios[0].criteria, _evidence(given))
    detail = next(score.detail for score in done.scores if score.name == VERDICT)
    return {
        "passed": done.outcome == "pass",
        "failedAssertion": detail["failed_assertion"] or None,
        "assertionsRun": detail["assertions_run"],
        "assertionsSkipped": detail["assertions_skipped"],
        "skippedTokens": detail["skipped_tokens"],
    }


def _evidence(given: Any) -> TrialEvidence:
    response = given["response"]
    calls = response["toolCalls"]
    return TrialEvidence(
        Transcript(events=tuple(event for n, call in enumerate(calls) for event in _events(str(n), call))),
        answer=response["response"],
        seconds=response["durationMs"] / 1000,
        usage=_usage(response.get("usage")),
        seed=given["seed"],
        snapshot=given["snapshot"],
    )


def _events(id: str, call: Any) -> tuple[Event, Event]:
    return (
        Event("tool_call", id, call["name"], input=call.get("params")),
        Event("tool_result", id, call["name"], success=call.get("success")),
    )


def _usage(given: Any) -> Usage | None:
    if not given:
        return None
    read, wrote = (
        next((given[name] for name in names if given.get(name) is not None), 0)
        for names in (
            ("inputTokens", "input_tokens", "prompt_tokens"),
            ("outputTokens", "output_tokens", "completion_tokens"),
        )
    )
    return Usage(read, wrote)


def _stub_loop(given: Any) -> Any:
    turns = [_turn(turn) for turn in given["turns"]]
    asked = count()
    done = run_stubs(
        "m",
        given["stubs"],
        lambda messages: turns[min(next(asked), len(turns) - 1)],
        max_turns=given.get("maxTurns") or MAX_TURNS,
    )
    usage = done.transcript.usage or Usage()
    return {
        "toolsCalled": list(done.tools_called),
        "missingStubs": list(done.missing_stubs),
        "responseText": done.transcript.answer,
        "modelTurns": done.turns,
        "inputTokens": usage.input,
        "outputTokens": usage.output,
    }


def _turn(turn: Any) -> ModelTurn:
    calls = [
        ModelCall(call["name"], call.get("input") or {}, call.get("id"))
        for call in turn.get("toolCalls") or ()
    ]
    return ModelTurn(turn.get("text") or "", tuple(calls), _usage(turn.get("usage")))


def _baseline(given: Any) -> Any:
    found = compare_passes(given["baseline"], given["current"])
    return {
        "regressions": list(found.regressions),
        "newPasses": list(found.new_passes),
        "added": list(found.added),
        "removed": list(found.removed),
    }


AREAS: dict[str, Callable[[Any], Any]] = {
    "tool_forge.baseline": _baseline,
    "tool_forge.case": _case,
    "tool_forge.descriptionHash": lambda given: {"hash": description_hash(given["description"])},
    "tool_forge.load": lambda given: _load(given["file"]),
    "tool_forge.staleness": _staleness,
    "tool_forge.stats.wilson": lambda given: msgspec.to_builtins(wilson_interval(**given)),
    "tool_forge.stub.loop": _stub_loop,
    "tool_forge.token": _token,
}

PENDING: frozenset[str] = frozenset()

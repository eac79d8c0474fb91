"""Translates the cases of AgentV to the functions that the product itself uses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluators.grading.evaluate import Criteria
from evaluators.grading.evaluator import Case, TrialEvidence
from evaluators.grading.scores import EVALUATORS
from evaluators.grading.scores.weighted_score import aggregate
from evaluators.model import Completion, Score, Transcript
from evaluators.tool_use.guidelines import is_guideline
from evaluators.transcripts.traces import read_trace, summarize_trace
from runs.errors import ProviderError
from runs.sandbox.sandbox import Level
from runs.targets import definitions
from runs.targets.agents.cli import output_name
from runs.targets.agents.command_template import TemplateValues, render
from runs.targets.providers.retry import (
    JITTER,
    Backoff,
    RequestFailed,
    RequestFailure,
    delay_ms,
    is_retryable,
    with_retry,
)
from scenarios.formats.parsed import ScenarioFileError
from tests.runs.containments import containment


def _target(given: Any) -> Any:
    try:
        definition = definitions.define(given["definition"])
        target = definitions.resolve_definition(definition, given["env"])
    except (ScenarioFileError, ProviderError) as error:
        return {"error": str(error)}
    config = target.options.as_config()
    if target.kind == "cli" and given.get("eval_file_path"):
        folder = Path(given["eval_file_path"]).parent
        config["cwd"] = str(containment(Level.OFF).working_folder(target.options.cwd, folder))
    retry = target.options.retry.as_config() if target.options.retry else None
    return {
        "kind": target.kind,
        "config": config,
        "providerBatching": target.options.provider_batching,
        "retry": retry,
        "retry_subset": retry,
    }


_OUTPUT_FILE = re.compile(r"'[^']*/agentv-([\w.-]+?)-\d+-\w+\.json'")


def _rendered(given: Any) -> Any:
    definition = definitions.define({"name": given["target_name"], "provider": "cli", **given["config"]})
    options = definitions.resolve_definition(definition, {}).options.as_config()
    request = given["request"]
    values = TemplateValues(
        prompt=request["question"],
        guidelines=request.get("guidelines") or "",
        eval_id=request.get("evalCaseId") or "",
        attempt=request.get("attempt") or 0,
        files=tuple(request.get("inputFiles") or ()),
        output_file=f"/tmp/{output_name(request.get('evalCaseId') or '')}",
    )
    command = render(options["commandTemplate"], values, options["filesFormat"])
    # The name holds the time and chance: it is put in the form in which the cases write it.
    return {"command": _OUTPUT_FILE.sub(r"'<TMPDIR>/agentv-\1-<ms>-<rand>.json'", command)}


def _transcript(trace: Any) -> Transcript:
    return Transcript() if trace is None else read_trace(trace)


def _scored(score: Score) -> Any:
    return {"score": score.value, **score.detail}


def _tool_trajectory(given: Any) -> Any:
    evaluator = EVALUATORS["tool_trajectory"].model_validate(given["config"])
    return _scored(evaluator.evaluate(Case(), TrialEvidence(_transcript(given["trace"])))[0])


def _expected_messages(given: Any) -> Any:
    case = Criteria.model_validate({"expected_messages": given["expected_messages"]})
    evaluator = EVALUATORS["expected_messages"]()
    return _scored(evaluator.evaluate(case, TrialEvidence(_transcript(given["trace"])))[0])


def _llm_judge(given: Any) -> Any:
    evidence = TrialEvidence(Transcript(), complete=lambda request: Completion(given["judge_response_text"]))
    return _scored(EVALUATORS["llm_judge"]().evaluate(Case(), evidence)[0])


def _aggregated(given: Any) -> Any:
    found = [
        Score("evaluators", one["name"], one["score"], weight=one.get("weight", 1.0))
        for one in given["evaluators"]
    ]
    return _scored(aggregate(found))


def _failure(error: Any) -> RequestFailure:
    known = ("message", "status", "code", "name")
    # An error of JavaScript may carry its status under other names.
    statuses = (error.get("statusCode"), (error.get("response") or {}).get("status"))
    status = next((one for one in statuses if one is not None), None)
    return RequestFailure(**{"status": status, **{name: error[name] for name in known if name in error}})


def _backoff(config: Any) -> Backoff:
    words = (re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name) for name in config)
    return Backoff(**dict(zip(words, config.values(), strict=True)))


def _calls_made(given: Any) -> int:
    made = 0

    def call() -> None:
        nonlocal made
        made += 1
        raise RequestFailed(_failure(given["error"]))

    try:
        with_retry(call, Backoff(max_retries=given["maxRetries"]), lambda seconds: None)
    except RequestFailed:
        return made
    raise AssertionError("the last failure is raised")


def _retry_policy(given: Any) -> Any:
    if given["fn"] == "is_retryable":
        failure = _failure(given["error"])
        retryable = is_retryable(failure, given["retryableStatusCodes"])
        return {"retryable": retryable, "status": failure.known_status}
    if given["fn"] == "retry_delay_ms":
        low, high = (
            delay_ms(given["attempt"], _backoff(given["config"]), jitter=factor) for factor in JITTER
        )
        return {"min": low, "max": high}
    return {"calls": _calls_made(given)}


AREAS: dict[str, Callable[[Any], Any]] = {
    "agentv.targets_resolution": _target,
    "agentv.retry_config": _target,
    "agentv.cli_provider": _rendered,
    "agentv.trace_summary": lambda given: summarize_trace(_transcript(given["trace"]).events).as_json(),
    "agentv.tool_trajectory": _tool_trajectory,
    "agentv.expected_messages": _expected_messages,
    "agentv.llm_judge": _llm_judge,
    "agentv.score_aggregation": _aggregated,
    "agentv.guideline_match": lambda given: {"match": is_guideline(given["path"], given["patterns"])},
    "agentv.retry_policy": _retry_policy,
}

PENDING: frozenset[str] = frozenset()

"""promptfoo's JSON output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from evaluators.model import Usage, plausible_cost
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
    """Return a run for each provider."""
    if given.members or not isinstance(given.value, dict):
        return ()
    found = list_of(object_of(given.value.get("results")).get("results"))
    if not found:
        return ()
    return _promptfoo(given.value, [each for each in found if isinstance(each, dict)], given.name)


def _promptfoo(value: dict[str, Any], rows: list[dict[str, Any]], file: str) -> tuple[ExternalRun, ...]:
    several = len({count_of(row.get("promptIdx")) for row in rows}) > 1
    by_provider: dict[str, list[ExternalTrial]] = {}
    for row in rows:
        provider = object_of(row.get("provider"))
        name = str(provider.get("label") or provider.get("id") or row.get("provider") or "imported")
        by_provider.setdefault(name, []).append(_promptfoo_trial(row, names_prompt=several))
    config, results = object_of(value.get("config")), object_of(value["results"])
    return tuple(
        ExternalRun(
            suite_name(config.get("description"), file),
            "promptfoo",
            provider,
            tuple(own),
            external_id=str(value.get("evalId") or ""),
            started=moment_of(results.get("timestamp")),
        )
        for provider, own in by_provider.items()
    )


PROMPTFOO_ERROR = 2
"""promptfoo's `failureReason` of a test whose provider failed; 1 is a failed assertion."""


def _promptfoo_trial(row: dict[str, Any], *, names_prompt: bool) -> ExternalTrial:
    grading, error = object_of(row.get("gradingResult")), str(row.get("error") or "")
    case, prompt = object_of(row.get("testCase")), object_of(row.get("prompt"))
    is_error = row.get("failureReason") == PROMPTFOO_ERROR or bool(error and not grading)
    outcome = "error" if is_error else "pass" if row.get("success") is True else "fail"
    name = str(case.get("description") or f"test {count_of(row.get('testIdx')) + 1}")
    own = f", prompt {count_of(row.get('promptIdx')) + 1}" if names_prompt else ""
    verdict: dict[str, Any] = {
        "layer": "assertions",
        "name": "verdict",
        "value": number_of(row.get("score"), 1) or 0.0,
        "passed": outcome == "pass",
        "message": str(grading.get("reason") or error or ""),
    }
    parts: Iterator[dict[str, Any]] = (
        {
            "layer": "assertions",
            "name": str(object_of(each.get("assertion")).get("type") or "assertion"),
            "value": number_of(each.get("score"), 1),
            "passed": each.get("pass") is True,
            "message": str(each.get("reason") or ""),
        }
        for each in list_of(grading.get("componentResults"))
        if isinstance(each, dict)
    )
    output = object_of(row.get("response")).get("output")
    return ExternalTrial(
        key=key_of(name + own),
        outcome=outcome,
        prompt=str(prompt.get("raw") or ""),
        answer=output if isinstance(output, str) else json.dumps(output) if output is not None else "",
        seconds=number_of(row.get("latencyMs"), 1000),
        usage=_usage(
            object_of(row.get("tokenUsage")) or object_of(object_of(row.get("response")).get("tokenUsage"))
        ),
        cost_usd=plausible_cost(row.get("cost")),
        scores=() if is_error else (verdict, *parts),
        error=(error or "The provider failed.") if is_error else "",
    )


def _usage(tokens: dict[str, Any]) -> Usage | None:
    """Return a row's tokens; None for one that promptfoo answered from its own cache, which says only their total.

    promptfoo passes on whether its provider counts the cache within the prompt; more than the prompt is apart from it.
    """
    prompt, written = count_of(tokens.get("prompt")), count_of(tokens.get("completion"))
    if not prompt and not written:
        return None
    details = object_of(tokens.get("completionDetails"))
    cached, created = (
        count_of(details.get(name)) for name in ("cacheReadInputTokens", "cacheCreationInputTokens")
    )
    is_within = cached + created <= prompt
    return Usage(
        prompt if is_within else prompt + cached + created,
        written,
        cache_read=cached,
        cache_write=created,
        reasoning=count_of(details.get("reasoning")),
    )

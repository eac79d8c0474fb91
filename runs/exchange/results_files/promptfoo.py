"""promptfoo's output as JSON or JSON lines, and which of its rows are trials of one scenario.

promptfoo numbers rows, not tests: `testIdx` counts repeats too, and `promptIdx` counts over providers and prompts.
So a test is identified by its contents, and a prompt by its id or label.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from evalhub.lib.limits import LONGEST_NAME
from evaluators.model import Usage, plausible_cost
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
    suite_name,
)

_LONGEST_VARS = 80
"""Characters of variables in a scenario's name."""
_PARTS = ("description", "vars", "assert", "threshold", "options")
"""What a test consists of."""


def keys_of_rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return each row's scenario: its test's description or number, with variables and prompt if they tell it apart."""
    tests = [_test(row) for row in rows]
    prompts = [_prompt(row) for row in rows]
    names = _names(dict(reversed(list(zip(tests, rows, strict=True)))), _ranks(rows, tests))
    numbers = _ranks(rows, prompts, by="promptIdx")
    # With a prompt each, providers are compared, whatever their prompts are called.
    several = _several_within_provider(rows, prompts)
    return [
        names[test] + (f", prompt {numbers[prompt]}" if several else "")
        for test, prompt in zip(tests, prompts, strict=True)
    ]


def _test(row: Mapping[str, Any]) -> Hashable:
    case = object_of(row.get("testCase"))
    parts = {name: case[name] for name in _PARTS if case.get(name)}
    if not parts.keys() & {"vars", "description", "assert"}:
        return as_count(row.get("testIdx"))
    return json.dumps(parts, sort_keys=True)


def _prompt(row: Mapping[str, Any]) -> Hashable:
    """Return what identifies a prompt in every provider; `promptIdx` counts over providers and prompts."""
    known = (row.get("promptId"), object_of(row.get("prompt")).get("label"))
    return json.dumps(known) if any(known) else as_count(row.get("promptIdx"))


def _several_within_provider(rows: Sequence[Mapping[str, Any]], prompts: Sequence[Hashable]) -> bool:
    by_provider: dict[str, set[Hashable]] = {}
    for row, prompt in zip(rows, prompts, strict=True):
        by_provider.setdefault(json.dumps(row.get("provider"), sort_keys=True), set()).add(prompt)
    return any(len(each) > 1 for each in by_provider.values())


def _ranks(
    rows: Sequence[Mapping[str, Any]], parts: Sequence[Hashable], by: str = "testIdx"
) -> dict[Hashable, int]:
    """Return each part's place among the different ones, from 1, by its lowest number."""
    lowest: dict[Hashable, int] = {}
    for row, part in zip(rows, parts, strict=True):
        lowest[part] = min(lowest.get(part, as_count(row.get(by))), as_count(row.get(by)))
    ordered = sorted(lowest, key=lambda part: lowest[part])
    return {part: place for place, part in enumerate(ordered, start=1)}


def _names(first: Mapping[Hashable, Mapping[str, Any]], ranks: Mapping[Hashable, int]) -> dict[Hashable, str]:
    """Return a unique name for each test, by its first row."""
    described = {test: _description(first[test], place) for test, place in ranks.items()}
    shared = Counter(described.values())
    named: dict[Hashable, str] = {}
    taken: Counter[str] = Counter()
    for test, name in described.items():
        if shared[name] > 1 and (variables := _variables(first[test])):
            name = f"{name} ({variables})"
        taken[name] += 1
        named[test] = name if taken[name] == 1 else f"{name} #{taken[name]}"
    return named


def _description(row: Mapping[str, Any], place: int) -> str:
    text = " ".join(str(object_of(row.get("testCase")).get("description") or "").split())
    return _shorten(text, LONGEST_NAME - _LONGEST_VARS - 20) or f"test {place}"


def _variables(row: Mapping[str, Any]) -> str:
    variables = object_of(object_of(row.get("testCase")).get("vars")) or object_of(row.get("vars"))
    shown = (
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in variables.items()
    )
    return _shorten(" ".join(", ".join(shown).split()), _LONGEST_VARS)


def _shorten(text: str, longest: int) -> str:
    """Return a text of at most this length, with a hash of what is cut."""
    if len(text) <= longest:
        return text
    return f"{text[: longest - 9]}… {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:7]}"


CACHED = "promptfoo answered this test from its cache, so its time is not known."


def read(results_file: ResultsFile) -> tuple[ExternalRun, ...]:
    """Return a run for each provider, of JSON or of JSON lines."""
    if results_file.members:
        return ()
    value = results_file.value if isinstance(results_file.value, dict) else {}
    results = object_of(value.get("results"))
    values = list_of(results.get("results")) or _rows_of_lines(results_file)
    rows = [each for each in values if _is_row(each)]
    config = object_of(value.get("config"))
    return _runs(
        rows,
        suite=suite_name(config.get("description"), results_file.name),
        skipped=len(values) - len(rows),
        program_version=str(object_of(value.get("metadata")).get("promptfooVersion") or ""),
        external_id=str(value.get("evalId") or ""),
        started=read_time(results.get("timestamp")),
    )


def _is_row(value: Any) -> bool:
    return isinstance(value, dict) and "provider" in value and ("promptIdx" in value or "testIdx" in value)


def _rows_of_lines(results_file: ResultsFile) -> list[Any]:
    """Return the values of JSON lines; empty unless the first is a promptfoo result."""
    if results_file.value is not None:
        return [results_file.value]
    lines = [line for line in results_file.text.splitlines() if line.strip()]
    if not lines or not _is_row(decode_storable_json(lines[0])):
        return []
    return [decode_storable_json(line) for line in lines]


def _runs(rows: list[dict[str, Any]], *, skipped: int, **shared: Any) -> tuple[ExternalRun, ...]:
    by_provider: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for row, key in zip(rows, keys_of_rows(rows), strict=True):
        provider = object_of(row.get("provider"))
        name = str(provider.get("label") or provider.get("id") or row.get("provider") or "imported")
        by_provider.setdefault(name, []).append((row, key))
    return tuple(
        ExternalRun(
            format="promptfoo",
            target=name,
            model=_model(name, group[0][0]),
            trials=tuple(_trial(row, key) for row, key in group),
            warnings=tuple(_warnings([row for row, _ in group], skipped)),
            **shared,
        )
        for name, group in by_provider.items()
    )


def _model(label: str, row: dict[str, Any]) -> str:
    """Return the provider's id if its label doesn't say it."""
    id = str(object_of(row.get("provider")).get("id") or "")
    return "" if id == label else id[:LONGEST_NAME]


def _warnings(rows: list[dict[str, Any]], skipped: int) -> Iterator[str]:
    if cached := sum(map(_is_cached, rows)):
        yield f"promptfoo answered {cached} of {len(rows)} tests from its cache; their times are not known."
    if skipped:
        yield f"Entries that aren't results were skipped: {skipped}."


PROMPTFOO_ERROR = 2
"""promptfoo's `failureReason` of a test whose provider failed; 1 is a failed assertion."""


def _is_cached(row: dict[str, Any]) -> bool:
    return object_of(row.get("response")).get("cached") is True


def _usage(row: dict[str, Any]) -> Usage | None:
    """Return a row's tokens; None for one that promptfoo answered from its own cache, which says only their total.

    promptfoo passes on whether its provider counts the cache within the prompt; more than the prompt is apart from it.
    """
    tokens = object_of(object_of(row.get("response")).get("tokenUsage")) or object_of(row.get("tokenUsage"))
    prompt, written = as_count(tokens.get("prompt")), as_count(tokens.get("completion"))
    if not prompt and not written:
        return None
    details = object_of(tokens.get("completionDetails"))
    cached, created = (
        as_count(details.get(name)) for name in ("cacheReadInputTokens", "cacheCreationInputTokens")
    )
    is_within = cached + created <= prompt
    return Usage(
        prompt if is_within else prompt + cached + created,
        written,
        cache_read=cached,
        cache_write=created,
        reasoning=as_count(details.get("reasoning")),
    )


def _part(result: dict[str, Any]) -> dict[str, Any]:
    """Return an assertion's score, under the name of its metric if it has one."""
    assertion = object_of(result.get("assertion"))
    kind, metric = str(assertion.get("type") or "assertion"), str(assertion.get("metric") or "")
    weight = number_of(assertion.get("weight"), 1)
    return {
        "layer": "assertions",
        "name": (metric or kind)[:LONGEST_NAME],
        "value": number_of(result.get("score"), 1),
        "passed": result.get("pass") is True,
        "message": str(result.get("reason") or ""),
        "weight": 1.0 if weight is None else weight,
        "detail": {"type": kind},
    }


def _trial(row: dict[str, Any], key: str) -> ExternalTrial:
    grading, error = object_of(row.get("gradingResult")), str(row.get("error") or "")
    prompt, is_cached = object_of(row.get("prompt")), _is_cached(row)
    is_error = row.get("failureReason") == PROMPTFOO_ERROR or bool(error and not grading)
    outcome = "error" if is_error else "pass" if row.get("success") is True else "fail"
    verdict: dict[str, Any] = {
        "layer": "assertions",
        "name": "verdict",
        "value": number_of(row.get("score"), 1) or 0.0,
        "passed": outcome == "pass",
        "message": str(grading.get("reason") or error or ""),
    }
    parts = (_part(each) for each in list_of(grading.get("componentResults")) if isinstance(each, dict))
    output = object_of(row.get("response")).get("output")
    return ExternalTrial(
        key=key_of_text(key),
        outcome=outcome,
        prompt=str(prompt.get("raw") or ""),
        answer=output if isinstance(output, str) else json.dumps(output) if output is not None else "",
        seconds=None if is_cached else number_of(row.get("latencyMs"), 1000),
        scores=() if is_error else (verdict, *parts),
        error=(error or "The provider failed.") if is_error else "",
        usage=_usage(row),
        cost_usd=plausible_cost(row.get("cost") or object_of(row.get("response")).get("cost")),
        warnings=(CACHED,) if is_cached else (),
    )

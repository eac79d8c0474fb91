"""Which of promptfoo's rows are trials of one scenario, and what it is called.

promptfoo numbers rows, not tests: `testIdx` counts repeats too, and `promptIdx` counts over providers and prompts. So a
test is what it consists of, and a prompt what its id or label says.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from evalhub.lib.limits import LONGEST_NAME
from runs.exchange.results_files.values import as_count, object_of

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

"""Whatever stands in an eval file, a suite comes out or one error with problems; nothing else is ever raised."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import yaml
from agentv_files import EVAL, upload
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scenarios.formats import parse_files
from scenarios.formats.parsed import ParsedSuite, ScenarioFileError

CALM = settings(max_examples=200, suppress_health_check=list(HealthCheck))
WORDS = [
    "type",
    "value",
    "file",
    "llm_judge",
    "composite",
    "evaluators",
    "..",
    "off",
    "aggregator",
    "rubrics",
    "$[",
]

WHOLE = yaml.safe_load(EVAL)
WHOLE["evalcases"].append(
    {
        "id": "all",
        "outcome": "x",
        "input_messages": [{"role": "user", "content": "Hi"}],
        "rubrics": ["Is short", {"id": "a", "description": "b"}],
        "evaluators": [
            {"type": "rubric", "rubrics": ["x"]},
            {
                "type": "composite",
                "evaluators": [{"type": "llm_judge"}, {"type": "expected_messages"}],
                "aggregator": {"type": "code_judge", "path": "sh x", "cwd": "."},
            },
        ],
    }
)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False)
    | st.sampled_from(WORDS)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document at which a value stands."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*at, key)
        yield from places(item, (*at, key))


def put(document: Any, at: tuple[Any, ...], value: Any) -> Any:
    """The document with another value at one place."""
    changed = copy.deepcopy(document)
    parent = changed
    for part in at[:-1]:
        parent = parent[part]
    parent[at[-1]] = value
    return changed


def read(files: dict[str, bytes]) -> tuple[ParsedSuite, ...]:
    try:
        return parse_files(files, name="b")
    except ScenarioFileError as refused:
        assert refused.problems
        assert all(problem.line >= 1 and problem.what[-1] in ".?" for problem in refused.problems)
        return ()


def test_the_document_that_is_changed_is_right():
    assert len(read(upload(json.dumps(WHOLE)))[0].scenarios) == 3


@CALM
@given(st.sampled_from(list(places(WHOLE))), json_values)
@example(("execution",), True)
def test_any_value_at_any_place(at, value):
    text = yaml.safe_dump(put(WHOLE, at, value), allow_unicode=True)
    for suite in read(upload(text)):
        assert suite.scenarios


@CALM
@given(st.sampled_from(list(places(WHOLE["evalcases"][0]))), json_values)
def test_any_value_in_a_dataset(at, value):
    case = put(WHOLE["evalcases"][0], at, value)
    for suite in read(upload(**{"evals/qa.jsonl": json.dumps(case)})):
        assert suite.scenarios

"""Gates that look into JSON by a path: which paths and assertions there are, and what holds."""

from __future__ import annotations

import json
import time

import pytest

from evaluators.grading.gates.json_path_gate import (
    BadAssertion,
    BadJsonPath,
    check_json_path,
    parse_assertion,
)
from evaluators.model import Score
from tests.evaluators.grading.gates.gate_samples import check
from tests.evaluators.samples import printed

pytestmark = pytest.mark.spec("llm-tool-test", "JSON path gate and its assertions")


def on_json(stdout: str, path: str, assertion: str) -> Score:
    return check({"type": "command_json_path", "path": path, "assertion": assertion}, printed(stdout))


@pytest.mark.parametrize(
    ("stdout", "path", "assertion", "passed"),
    [
        ('{"a": {"b": true}}', "$.a.b", "exists", True),
        ('{"a": null}', "$.a", "exists", False),
        ("[NaN]", "$", "len == 1", False),
        ('{"a": -Infinity}', "$.a", "exists", False),
        ('{"a": "NaN"}', "$.a", "equals NaN", True),
        ("{}", "$.a", "exists", False),
        ('{"a": 3}', "$.a", "equals 3.0", True),
        ('{"a": "3"}', "$.a", "equals 3", False),
        ('{"a": "3"}', "$.a", 'equals "3"', True),
        ('{"a": true}', "$.a", "equals 1", False),
        ('{"a": "x y"}', "$.a", "equals x y", True),
        ('{"a": [1, {"b": 2.0}]}', "$.a", 'equals [1, {"b": 2}]', True),
        ("{}", "$.a", "equals 1", False),
        ('{"a": "build done"}', "$.a", "contains done", True),
        ('{"a": ["done"]}', "$.a", "contains done", False),
        ('[{"s": "a"}, {"s": "b"}]', "$[*].s", "equals b", True),
        ('[{"s": "a"}, {"s": "b"}]', "$[*].s", "contains c", False),
        ("[1, 2, 3]", "$", "len >= 3", True),
        ("[1, 2, 3]", "$", "len > 3", False),
        ("[1, 2, 3]", "$", "len < 4", True),
        ("[1, 2, 3]", "$", "len<=2", False),
        ('{"a": 1, "b": 2}', "$", "len == 2", True),
        ('{"s": "abc"}', "$.s", "len >= 1", False),
        ("{}", "$.s", "len == 0", False),
        ('{"items": [{"a": 1, "b": 2}]}', "$.items[*]", "len == 1", True),
        ('{"items": []}', "$.items[*]", "len == 0", True),
        ('{"items": [{"n": 1}, {"n": 5}]}', "$.items[?(@.n > 2)]", "len == 1", True),
        ('{"a": {"items": [1]}, "b": {"items": [2]}}', "$..items", "len == 2", True),
        ('{"k v": 1}', "$['k v']", "exists", True),
        ("[1, 2]", "$[-1]", "equals 2", True),
        ('{"é": 1}', "$.é", "equals 1", True),
        ('{"a": {"größe": [1, 2]}}', "$.a.größe[1]", "equals 2", True),
        ('{"名前": {"キー": 1}}', "$..キー", "equals 1", True),
        ('[{"é": 1}, {"é": 2}]', "$[?(@.é == 2)].é", "equals 2", True),
        ('[{"a": "ü"}, {"a": "u"}]', "$[?(@.a == 'ü')]", "len == 1", True),
        ('{"naïve-key": 1, "é b": 2}', "$['é b']", "equals 2", True),
        ('{"naïve-key": 1}', "$.naïve-key", "equals 1", True),
    ],
)
def test_json_path(stdout: str, path: str, assertion: str, passed: bool) -> None:
    score = on_json(stdout, path, assertion)
    assert score.passed is passed
    assert score.detail["expected"] == assertion


def test_json_path_messages_show_the_found_value() -> None:
    assert on_json('{"a": 4}', "$.a", "equals 3").message.endswith("expected 3 at $.a, found 4.")
    assert on_json("{}", "$.a", "exists").message.endswith("expected a value at $.a, found nothing.")
    assert on_json("oops", "$.a", "exists").message.endswith("its output is not JSON.")


@pytest.mark.parametrize(
    "text", ["", "is 3", "equals", "contains", "len 3", "len >= x", "len != 3", "exists now"]
)
def test_an_unknown_assertion_is_refused(text: str) -> None:
    with pytest.raises(BadAssertion, match="Write exists, equals VALUE, contains TEXT, or len >= N"):
        parse_assertion(text)


@pytest.mark.parametrize("text", ["$[", "", "a b c", "$.x[?(@.a"])
def test_an_invalid_json_path_is_refused(text: str) -> None:
    with pytest.raises(BadJsonPath, match=r"is not a JSONPath: .*[^.!]\. Write one such as"):
        check_json_path(text)


@pytest.mark.parametrize("text", ["$.x[?(@.a =~ '(a+)+$')]", "$.`sub(/(a+)+$/, b)`"])
def test_a_path_that_runs_a_pattern_is_refused(text: str) -> None:
    with pytest.raises(BadJsonPath, match="not allowed in a path"):
        check_json_path(text)


@pytest.mark.parametrize("text", ["$.a & $.b", "$.x[*].(a & b)", "$.(a & b).c"])
def test_a_path_that_intersects_is_refused_before_it_fails(text):
    with pytest.raises(BadJsonPath, match="Use one gate for each"):
        check_json_path(text)


@pytest.mark.parametrize("text", ["$.a | $.b", "$[?(@.x > 1 & @.y < 3)]"])
def test_a_path_that_a_later_release_drops_is_read_in_silence(text):
    assert check_json_path(text).find({"c": 1}) == []


NESTED = "[" * 90 + "1" + "]" * 90
KEYS = '{"a": ' * 60 + "1" + "}" * 60
MANY = json.dumps([[1]] * 50_000)


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("stdout", "path"),
    [
        (NESTED, "$..*..*..*..*"),
        (NESTED, "$" + "[0,0]" * 40),
        (KEYS, "$." + ".".join(["a,a"] * 40)),
        (KEYS, "$." + ".".join(["(a|a)"] * 40)),
        (MANY, "$[*].`parent`[*]"),
        (MANY, "$[?($..*)]"),
        (MANY, "$[*].(x|$)[*]"),
        (MANY, "$..*" + f"[{','.join('0' * 200)}]"),
    ],
)
def test_a_path_that_multiplies_what_it_finds_is_stopped(stdout: str, path: str) -> None:
    started = time.thread_time()
    score = on_json(stdout, path, "exists")
    assert not score.passed
    assert "values of its output more than once; 200,000 are allowed." in score.message
    assert time.thread_time() - started < 10


@pytest.mark.parametrize(
    "path", ["$..a", "$..*", "$..a..a", "$[*].a | $[*].b", "$[?(@..a == 1)]", "$[*].`parent`", "$[0,1].a"]
)
def test_other_paths_search_as_before(path: str) -> None:
    assert (
        "more than once" not in on_json(json.dumps([{"a": 1, "b": {"a": 1}}] * 100), path, "exists").message
    )


def test_an_output_that_is_nested_too_deep_fails() -> None:
    assert not on_json("[" * 900 + "1" + "]" * 900, "$..*", "equals 2").passed
    assert not on_json("[" * 100_000, "$..*", "exists").passed

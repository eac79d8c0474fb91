import json

import pytest

from scenarios.formats import parse_files
from scenarios.formats.parsed import ScenarioFileError
from tests.scenarios.formats.tool_forge_files import PARAM, case, refusals

# fmt: off
BROKEN_FILES = [
    pytest.param('{"foo": 1}', 1, "cases", "format/missing-field", id="no cases"),
    pytest.param('{\n"cases": {}}', 2, "cases", "format/wrong-type", id="cases no list"),
    pytest.param("[\n3]", 2, "[0]", "format/wrong-type", id="a case no object"),
    pytest.param('{"metadata": 3,\n"cases": []}', 1, "metadata", "format/wrong-type", id="metadata"),
    pytest.param('[\n{"input": {"message": "m"}}]', 2, "[0].id", "format/missing-field", id="no id"),
    pytest.param('[{"id": "a",\n"input": {}}]', 2, "[0].input.message", "format/missing-field", id="no message"),
    pytest.param('[{"id": "a",\n"input": {"message": " "}}]', 2, "[0].input.message", "format/empty-value", id="blank"),
    pytest.param('[{"id": "a", "input": {"message": "m"},\n"expect": 3}]', 2, "[0].expect", "format/wrong-type", id="expect"),
    pytest.param('[{"id": "a", "input": {"message": "m"},\n"maxTurns": 0}]', 2, "[0].maxTurns", "format/out-of-range", id="turns"),
    pytest.param('[{"id": "a", "input": {"message": "m"},\n"stubs": []}]', 2, "[0].stubs", "format/wrong-type", id="stubs"),
    pytest.param('[{"id": "a", "input": {"message": "m"}},\n{"id": "a", "input": {"message": "m"}}]', 2, "[1].id", "format/duplicate-scenario", id="twice"),
    pytest.param('[{"id": "a",\n"id": "b"}]', 2, "[0].id", "format/duplicate-key", id="a key twice"),
    pytest.param("[\n{]", 2, "", "format/not-json", id="no JSON"),
    pytest.param("[{} // why\n]", 1, "", "format/not-json", id="a comment"),
]
# fmt: on


@pytest.mark.parametrize(("broken", "line", "where", "id"), BROKEN_FILES)
def test_a_broken_file_is_refused_with_its_line(broken, line, where, id):
    assert (line, where, id) in [(found.line, found.where, found.id) for found in refusals(broken)]


# fmt: off
BROKEN_ASSERTIONS = [
    pytest.param({"toolsCalled": [3]}, "toolsCalled[0]", "format/wrong-type", id="a name"),
    pytest.param({"noToolErrors": "yes"}, "noToolErrors", "format/wrong-type", id="a switch"),
    pytest.param({"maxLatencyMs": -1}, "maxLatencyMs", "format/out-of-range", id="below zero"),
    pytest.param({"maxTokens": "9"}, "maxTokens", "format/wrong-type", id="a bound as text"),
    pytest.param({"responseContains": {}}, "responseContains", "format/wrong-type", id="a mapping"),
    pytest.param({"responseMatches": ["("]}, "responseMatches[0]", "format/bad-regex", id="a pattern"),
    pytest.param({"toolParams": [{**PARAM, "assertion": "is"}]}, "toolParams[0].assertion", "format/unknown-value", id="an assertion"),
    pytest.param({"toolParams": [{**PARAM, "assertion": "matches", "value": "("}]}, "toolParams[0].value", "format/bad-regex", id="a parameter's pattern"),
    pytest.param({"toolParams": [{**PARAM, "assertion": "oneOf", "value": []}]}, "toolParams[0].value", "format/empty-value", id="one of nothing"),
    pytest.param({"toolParams": [{k: v for k, v in PARAM.items() if k != "value"}]}, "toolParams[0]", "format/missing-field", id="no value"),
    pytest.param({"toolParams": [{k: v for k, v in PARAM.items() if k != "tool"}]}, "toolParams[0].tool", "format/missing-field", id="no tool"),
]
# fmt: on


@pytest.mark.parametrize(("expect", "where", "id"), BROKEN_ASSERTIONS)
def test_a_broken_assertion_is_refused_with_its_line(expect, where, id):
    text = json.dumps([case(expect=expect)], indent=1)
    (found,) = refusals(text)
    assert (found.where, found.id) == (f"[0].expect.{where}", id)
    key = where.partition("[")[0]
    assert found.line >= next(n for n, line in enumerate(text.splitlines(), 1) if f'"{key}"' in line)


def test_every_problem_of_a_file_is_reported_at_once():
    broken = [case("a", expect={"maxTokens": -1, "noToolErrors": 3}), {"id": "b"}, case("a")]
    assert {found.where for found in refusals(json.dumps(broken))} >= {
        "[0].expect.maxTokens",
        "[0].expect.noToolErrors",
        "[1].input",
    }


def test_a_repeated_id_on_one_line_is_refused():
    (found,) = refusals(json.dumps([case("a"), case("a")]))
    assert found.id == "format/duplicate-scenario"


def test_problems_in_two_files_are_reported_together():
    files = {"a.golden.json": b'{"foo": 1}', "b.golden.json": b"[3]"}
    with pytest.raises(ScenarioFileError) as refused:
        parse_files(files, name="bundle")
    assert {problem.file for problem in refused.value.problems} == set(files)


def test_a_bundle_with_an_unreadable_eval_file_is_refused():
    files = {"a.golden.json": json.dumps([case()]).encode(), "b.golden.json": b"[3,"}
    with pytest.raises(ScenarioFileError, match=r"b\.golden\.json:1"):
        parse_files(files, name="bundle")


def test_an_unreadable_seed_manifest_is_refused():
    files = {"a.golden.json": json.dumps([case()]).encode(), "seed-manifest.json": b"{\n3}"}
    with pytest.raises(ScenarioFileError, match=r"seed-manifest\.json:2"):
        parse_files(files, name="bundle")


def test_a_group_that_is_not_a_list_is_refused():
    (found,) = refusals('{"expectedTool": "a",\n"shouldRouteDifferently": {"cases": 3}}')
    assert (found.line, found.where) == (2, "shouldRouteDifferently.cases")


STRICTLY_REFUSED = {"an unknown key": {"expect": {"responseContain": ["a"]}}, "no expect": {"expect": ...}}


@pytest.mark.parametrize("more", STRICTLY_REFUSED.values(), ids=STRICTLY_REFUSED)
def test_strict_mode_refuses_it(more):
    text = json.dumps([case(**more)])
    assert refusals(text) == []
    assert len(refusals(text, strict=True)) == 1


def test_strict_mode_accepts_other_lints():
    assert refusals(json.dumps([case(expect={"toolsCalled": "a"})]), strict=True) == []

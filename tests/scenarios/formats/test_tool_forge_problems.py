import json

import pytest

from scenarios.formats import parse_files
from scenarios.formats.problems import ScenarioFileError
from tests.scenarios.formats.tool_forge_files import case, lints, parse, refusals

PARAM = {"tool": "t", "paramName": "p", "assertion": "equals", "value": "x"}


@pytest.mark.parametrize(
    ("broken", "line", "where", "id"),
    [
        pytest.param('{"foo": 1}', 1, "cases", "format/missing-field", id="no cases"),
        pytest.param('{\n"cases": {}}', 2, "cases", "format/wrong-type", id="cases no list"),
        pytest.param("[\n3]", 2, "[0]", "format/wrong-type", id="a case no object"),
        pytest.param('{"metadata": 3,\n"cases": []}', 1, "metadata", "format/wrong-type", id="metadata"),
        pytest.param('[\n{"input": {"message": "m"}}]', 2, "[0].id", "format/missing-field", id="no id"),
        pytest.param(
            '[{"id": "a",\n"input": {}}]', 2, "[0].input.message", "format/missing-field", id="no message"
        ),
        pytest.param(
            '[{"id": "a",\n"input": {"message": " "}}]',
            2,
            "[0].input.message",
            "format/empty-value",
            id="blank",
        ),
        pytest.param(
            '[{"id": "a", "input": {"message": "m"},\n"expect": 3}]',
            2,
            "[0].expect",
            "format/wrong-type",
            id="expect",
        ),
        pytest.param(
            '[{"id": "a", "input": {"message": "m"},\n"maxTurns": 0}]',
            2,
            "[0].maxTurns",
            "format/out-of-range",
            id="turns",
        ),
        pytest.param(
            '[{"id": "a", "input": {"message": "m"},\n"stubs": []}]',
            2,
            "[0].stubs",
            "format/wrong-type",
            id="stubs",
        ),
        pytest.param(
            '[{"id": "a", "input": {"message": "m"}},\n{"id": "a", "input": {"message": "m"}}]',
            2,
            "[1].id",
            "format/duplicate-scenario",
            id="twice",
        ),
        pytest.param('[{"id": "a",\n"id": "b"}]', 2, "[0].id", "format/duplicate-key", id="a key twice"),
        pytest.param("[\n{]", 2, "", "format/not-json", id="no JSON"),
        pytest.param("[{} // why\n]", 1, "", "format/not-json", id="a comment"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(broken, line, where, id):
    assert (line, where, id) in [(found.line, found.where, found.id) for found in refusals(broken)]


@pytest.mark.parametrize(
    ("expect", "where", "id"),
    [
        pytest.param({"toolsCalled": [3]}, "toolsCalled[0]", "format/wrong-type", id="a name"),
        pytest.param({"noToolErrors": "yes"}, "noToolErrors", "format/wrong-type", id="a switch"),
        pytest.param({"maxLatencyMs": -1}, "maxLatencyMs", "format/out-of-range", id="below zero"),
        pytest.param({"maxTokens": "9"}, "maxTokens", "format/wrong-type", id="a bound as text"),
        pytest.param({"responseContains": {}}, "responseContains", "format/wrong-type", id="a mapping"),
        pytest.param({"responseMatches": ["("]}, "responseMatches[0]", "format/bad-regex", id="a pattern"),
        pytest.param(
            {"toolParams": [{**PARAM, "assertion": "is"}]},
            "toolParams[0].assertion",
            "format/unknown-value",
            id="an assertion",
        ),
        pytest.param(
            {"toolParams": [{**PARAM, "assertion": "matches", "value": "("}]},
            "toolParams[0].value",
            "format/bad-regex",
            id="a parameter's pattern",
        ),
        pytest.param(
            {"toolParams": [{**PARAM, "assertion": "oneOf", "value": []}]},
            "toolParams[0].value",
            "format/empty-value",
            id="one of nothing",
        ),
        pytest.param(
            {"toolParams": [{k: v for k, v in PARAM.items() if k != "value"}]},
            "toolParams[0]",
            "format/missing-field",
            id="no value",
        ),
        pytest.param(
            {"toolParams": [{k: v for k, v in PARAM.items() if k != "tool"}]},
            "toolParams[0].tool",
            "format/missing-field",
            id="no tool",
        ),
    ],
)
def test_a_broken_assertion_is_refused_with_its_line(expect, where, id):
    text = json.dumps([case(expect=expect)], indent=1)
    (found,) = refusals(text)
    assert (found.where, found.id) == (f"[0].expect.{where}", id)
    key = where.partition("[")[0]
    assert found.line >= next(n for n, line in enumerate(text.splitlines(), 1) if f'"{key}"' in line)


def test_every_problem_of_a_file_is_told_at_once():
    broken = [case("a", expect={"maxTokens": -1, "noToolErrors": 3}), {"id": "b"}, case("a")]
    assert {found.where for found in refusals(json.dumps(broken))} >= {
        "[0].expect.maxTokens",
        "[0].expect.noToolErrors",
        "[1].input",
    }


def test_a_repeated_id_on_one_line_is_refused():
    (found,) = refusals(json.dumps([case("a"), case("a")]))
    assert found.id == "format/duplicate-scenario"


def test_problems_in_two_files_are_told_together():
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


@pytest.mark.parametrize(
    ("expect", "lint"),
    [
        pytest.param({}, "expect format/vacuous", id="empty expect"),
        pytest.param({"toolsCaled": []}, "expect.toolsCaled format/unknown-key", id="unknown key"),
        pytest.param({"toolsCalled": "a"}, "expect.toolsCalled format/scalar-for-list", id="scalar"),
        pytest.param({"toolsCalled": None}, "expect.toolsCalled format/no-value", id="null"),
        pytest.param(
            {"responseContains": [7]}, "expect.responseContains[0] format/not-text-value", id="number"
        ),
        pytest.param(
            {"responseContainsAny": ["a"]}, "expect.responseContainsAny format/flat-group", id="flat"
        ),
        pytest.param({"toolsAcceptable": []}, "expect.toolsAcceptable format/empty-assertion", id="no set"),
        pytest.param(
            {"responseContainsAny": []}, "expect.responseContainsAny format/empty-assertion", id="no group"
        ),
        pytest.param(
            {"responseContainsAny": [[]]},
            "expect.responseContainsAny[0] format/empty-assertion",
            id="empty group",
        ),
        pytest.param({"toolsNotCalled": []}, "expect.toolsNotCalled format/empty-assertion", id="no tool"),
        pytest.param(
            {"responseContains": [""]}, "expect.responseContains[0] format/empty-text", id="empty text"
        ),
        pytest.param(
            {"toolParams": [{**PARAM, "value": ""}]},
            "expect.toolParams[0].value format/empty-text",
            id="empty value",
        ),
        pytest.param(
            {"toolsAcceptable": [["__none__", "a"]]},
            "expect.toolsAcceptable[0] format/mixed-none",
            id="none with a tool",
        ),
        pytest.param(
            {"toolsCalled": ["a"], "toolsAcceptable": [["a"]]},
            "expect.toolsAcceptable format/both-tools",
            id="both",
        ),
        pytest.param(
            {"toolsCalled": ["{{seed:a}}"]},
            "expect.toolsCalled[0] format/token-not-replaced",
            id="token in tools",
        ),
        pytest.param(
            {"toolsAcceptable": [["{{seed:a}}"]]},
            "expect.toolsAcceptable[0][0] format/token-not-replaced",
            id="token in sets",
        ),
        pytest.param(
            {"responseMatches": ["{{seed:a}}"]},
            "expect.responseMatches[0] format/token-not-replaced",
            id="token in pattern",
        ),
        pytest.param(
            {"responseContains": ["{{env:X}}"]},
            "expect.responseContains[0] format/unknown-token",
            id="other source",
        ),
        pytest.param(
            {"responseContainsAny": [["{{ seed:a }}"]]},
            "expect.responseContainsAny[0][0] format/unknown-token",
            id="blanks",
        ),
        pytest.param(
            {"toolParams": [{**PARAM, "value": "{{seed:a}}"}]},
            "expect.toolParams[0].value format/no-seed-manifest",
            id="no seed",
        ),
        pytest.param(
            {"toolParams": [{**PARAM, "assertion": "exists"}]},
            "expect.toolParams[0].value format/needless-value",
            id="needless value",
        ),
        pytest.param(
            {"toolParams": [{**PARAM, "assertion": "oneOf"}]},
            "expect.toolParams[0].value format/scalar-for-list",
            id="one of a scalar",
        ),
    ],
)
def test_what_is_hardly_meant_is_a_lint(expect, lint):
    assert lint in lints(expect)


@pytest.mark.parametrize(
    ("more", "lint"),
    [
        pytest.param({"expect": ...}, " format/vacuous", id="no expect"),
        pytest.param({"stubs": {}}, "stubs format/empty-stubs", id="empty stubs"),
        pytest.param({"maxTurns": 3}, "maxTurns format/needless-max-turns", id="turns without stubs"),
        pytest.param({"requiresPreamble": True}, "requiresPreamble format/not-checked", id="preamble"),
        pytest.param(
            {"message": "{{seed:a}}?"}, "input.message format/token-not-replaced", id="token in message"
        ),
        pytest.param({"mesage": 1}, "mesage format/unknown-key", id="unknown key"),
        pytest.param({"expect": ..., "expectedTool": "a"}, " format/case-without-expect", id="third format"),
        pytest.param({"expectedTool": "a"}, " format/not-checked", id="third format beside expect"),
        pytest.param(
            {"expect": ..., "expectedTool": "a", "label": "partial"}, "label format/not-checked", id="label"
        ),
        pytest.param(
            {"expect": ..., "expectedArgs": {"a": 1}},
            "expectedArgs format/not-checked",
            id="arguments of no tool",
        ),
        pytest.param(
            {"expect": ..., "checks": [{"type": "arg_equals", "arg": "a"}]},
            "checks[0] format/not-checked",
            id="argument of no tool",
        ),
        pytest.param(
            {"expect": ..., "expectedTool": "a", "checks": [{"type": "x"}]},
            "checks[0].type format/unknown-value",
            id="unknown check",
        ),
    ],
)
def test_a_case_that_is_hardly_meant_has_a_lint(more, lint):
    expect = more.pop("expect", {"responseNonEmpty": True})
    assert lint in lints(expect, **more)


def test_a_good_case_has_no_lint():
    expect = {
        "toolsCalled": [],
        "responseContains": ["{{snapshot:a}}"],
        "responseMatches": ["a"],
        "maxTokens": 1,
    }
    assert lints(expect, stubs={"a": 1}, maxTurns=2) == []


@pytest.mark.parametrize("key", ["responseMatches", "maxTokens"])
def test_what_the_contract_has_in_labeled_evals_is_a_lint_in_golden(key):
    expect = {"responseMatches": ["a"], "maxTokens": 1}
    assert f"expect.{key} format/labeled-only" in lints(expect, file="a.golden.json")


def test_a_snapshot_in_a_regression_case_is_a_lint():
    expect = {"responseContains": ["{{snapshot:a}}"]}
    assert lints(expect, file="a.regression.json") == [
        "expect.responseContains[0] format/snapshot-in-regression"
    ]


def test_a_seed_token_with_a_seed_manifest_has_no_lint():
    expect = {"responseContains": ["{{seed:a}}"]}
    assert parse([case(expect=expect)], **{"seed-manifest.json": {}}).lints == ()


def test_an_implied_expectation_is_a_lint():
    file = {"expectedTool": "a", "shouldRouteIdentically": [case(expect=...)]}
    (lint,) = parse(file, file="a.perturbation.json").lints
    assert (lint.id, lint.where) == ("format/implied-expect", "shouldRouteIdentically[0]")


def test_a_group_that_is_no_list_is_refused():
    (found,) = refusals('{"expectedTool": "a",\n"shouldRouteDifferently": {"cases": 3}}')
    assert (found.line, found.where) == (2, "shouldRouteDifferently.cases")


def test_a_placeholder_in_the_metadata_is_a_lint():
    (lint,) = parse({"metadata": {"toolVersion": "{{version}}"}, "cases": [case()]}).lints
    assert (lint.id, lint.where) == ("format/placeholder", "metadata.toolVersion")


@pytest.mark.parametrize("file", [[], {"metadata": None, "cases": []}], ids=["bare", "envelope"])
def test_a_file_without_cases_is_a_lint(file):
    suite = parse(file)
    assert suite.scenarios == ()
    assert [lint.id for lint in suite.lints] == ["format/no-cases"]


def test_an_unknown_key_is_shown_with_the_one_that_was_meant():
    (lint,) = parse([case(expect={"responseContain": ["a"]})]).lints
    assert lint.fix == "Did you mean 'responseContains'?"


def test_a_key_of_the_program_alone_is_told_to_be_one():
    (lint,) = parse([case(expect={"maxCost": 1, "responseNonEmpty": True})]).lints
    assert lint.fix.startswith("It belongs to tool-forge's program")


STRICTLY_REFUSED = {
    "an unknown key": {"expect": {"responseContain": ["a"]}},
    "no expect": {"expect": ...},
    "the third format": {"expect": ..., "expectedTool": "a"},
}


@pytest.mark.parametrize("more", STRICTLY_REFUSED.values(), ids=STRICTLY_REFUSED)
def test_strict_mode_refuses_it(more):
    text = json.dumps([case(**more)])
    assert refusals(text) == []
    assert len(refusals(text, strict=True)) == 1


def test_strict_mode_takes_what_is_only_a_lint():
    assert refusals(json.dumps([case(expect={"toolsCalled": "a"})]), strict=True) == []

"""Likely mistakes in tool-forge's files, reported without refusing the file."""

import pytest

from tests.scenarios.formats.tool_forge_files import PARAM, case, lints, parse


@pytest.mark.parametrize(
    ("expect", "lint"),
    [
        pytest.param({}, "expect format/vacuous", id="empty expect"),
        pytest.param({"toolsCaled": []}, "expect.toolsCaled format/unknown-key", id="unknown key"),
        pytest.param({"toolsCalled": "a"}, "expect.toolsCalled format/scalar-for-list", id="scalar"),
        pytest.param({"toolsCalled": None}, "expect.toolsCalled format/no-value", id="null"),
        pytest.param({"responseContains": [7]}, "expect.responseContains[0] format/not-text-value", id="number"),
        pytest.param({"responseContainsAny": ["a"]}, "expect.responseContainsAny format/flat-group", id="flat"),
        pytest.param({"toolsAcceptable": []}, "expect.toolsAcceptable format/empty-assertion", id="no set"),
        pytest.param({"responseContainsAny": []}, "expect.responseContainsAny format/empty-assertion", id="no group"),
        pytest.param({"responseContainsAny": [[]]}, "expect.responseContainsAny[0] format/empty-assertion", id="empty group"),
        pytest.param({"toolsNotCalled": []}, "expect.toolsNotCalled format/empty-assertion", id="no tool"),
        pytest.param({"responseContains": [""]}, "expect.responseContains[0] format/empty-text", id="empty text"),
        pytest.param({"toolParams": [{**PARAM, "value": ""}]}, "expect.toolParams[0].value format/empty-text", id="empty value"),
        pytest.param({"toolsAcceptable": [["__none__", "a"]]}, "expect.toolsAcceptable[0] format/mixed-none", id="none with a tool"),
        pytest.param({"toolsCalled": ["a"], "toolsAcceptable": [["a"]]}, "expect.toolsAcceptable format/both-tools", id="both"),
        pytest.param({"toolsCalled": ["{{seed:a}}"]}, "expect.toolsCalled[0] format/token-not-replaced", id="token in tools"),
        pytest.param({"toolsAcceptable": [["{{seed:a}}"]]}, "expect.toolsAcceptable[0][0] format/token-not-replaced", id="token in sets"),
        pytest.param({"responseMatches": ["{{seed:a}}"]}, "expect.responseMatches[0] format/token-not-replaced", id="token in pattern"),
        pytest.param({"responseContains": ["{{env:X}}"]}, "expect.responseContains[0] format/unknown-token", id="other source"),
        pytest.param({"responseContainsAny": [["{{ seed:a }}"]]}, "expect.responseContainsAny[0][0] format/unknown-token", id="blanks"),
        pytest.param({"toolParams": [{**PARAM, "value": "{{seed:a}}"}]}, "expect.toolParams[0].value format/no-seed-manifest", id="no seed"),
        pytest.param({"toolParams": [{**PARAM, "assertion": "exists"}]}, "expect.toolParams[0].value format/needless-value", id="needless value"),
        pytest.param({"toolParams": [{**PARAM, "assertion": "oneOf"}]}, "expect.toolParams[0].value format/scalar-for-list", id="one of a scalar"),
    ],
)  # fmt: skip
def test_a_probable_mistake_is_a_lint(expect, lint):
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
        pytest.param({"expectedTool": "a"}, "expectedTool format/unknown-key", id="a key of no runner"),
    ],
)
@pytest.mark.spec("tool-forge", "Fields with tokens")
def test_a_probable_mistake_in_a_case_is_a_lint(more, lint):
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
@pytest.mark.spec("tool-forge", "Assertions of labeled evals only")
def test_labeled_only_assertions_are_a_lint_in_golden(key):
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


def test_a_placeholder_in_the_metadata_is_a_lint():
    (lint,) = parse({"metadata": {"toolVersion": "{{version}}"}, "cases": [case()]}).lints
    assert (lint.id, lint.where) == ("format/placeholder", "metadata.toolVersion")


@pytest.mark.parametrize("file", [[], {"metadata": None, "cases": []}], ids=["bare", "envelope"])
def test_a_file_without_cases_is_a_lint(file):
    suite = parse(file)
    assert suite.scenarios == ()
    assert [lint.id for lint in suite.lints] == ["format/no-cases"]


def test_an_unknown_key_suggests_a_similar_one():
    (lint,) = parse([case(expect={"responseContain": ["a"]})]).lints
    assert lint.fix == "Did you mean 'responseContains'?"


def test_a_key_outside_the_contract_is_named_as_such():
    (lint,) = parse([case(expect={"maxCost": 1, "responseNonEmpty": True})]).lints
    assert lint.fix.startswith("It is not in tool-forge's contract")

import hashlib
import json

import pytest

from evaluators.grading.assertions import Expect, ToolParam
from scenarios.formats import companions, parse_files
from scenarios.storing import task_hash
from tests.scenarios.formats.tool_forge_files import case, parse, spec

METADATA = {"toolName": "get_weather", "toolVersion": "1.0.0", "registrySize": 2, "tier": "golden"}
WEATHER = {
    "id": "gs-get-weather-001",
    "description": "trigger phrase",
    "difficulty": "ambiguous",
    "bugRef": "GH-12",
    "createdAt": "2026-01-01T00:00:00Z",
    "input": {"message": "Weather in Paris?"},
    "stubs": {"get_weather": {"temperature": 18}},
    "maxTurns": 3,
    "expect": {
        "toolsCalled": ["get_weather"],
        "toolsAcceptable": [["get_weather"], ["__none__"]],
        "toolsNotCalled": ["get_forecast"],
        "toolParams": [
            {"tool": "get_weather", "paramName": "city", "assertion": "equals", "value": "Paris"},
            {"tool": "get_weather", "paramName": "unit", "assertion": "oneOf", "value": ["c", "f"]},
            {"tool": "get_weather", "paramName": "x", "assertion": "notExists"},
        ],
        "noToolErrors": True,
        "responseNonEmpty": True,
        "responseContains": ["Paris"],
        "responseContainsAny": [["18", "eighteen"]],
        "responseNotContains": ["fetchedAt"],
        "responseMatches": ["\\d+"],
        "maxLatencyMs": 5000,
        "maxTokens": 0,
    },
}


def test_it_reads_every_field_of_a_case():
    suite = parse({"metadata": METADATA, "cases": [WEATHER]})
    (found,) = suite.scenarios
    assert (found.key, found.description, found.prompt) == (
        "gs-get-weather-001",
        "trigger phrase",
        "Weather in Paris?",
    )
    assert (found.difficulty, found.bug_ref, found.limits.max_turns) == ("ambiguous", "GH-12", 3)
    assert found.stubs == {"get_weather": {"temperature": 18}}
    assert found.metadata == {"tier": "golden", "createdAt": "2026-01-01T00:00:00Z"}
    assert found.tags == ("golden", "ambiguous")


def test_it_reads_every_assertion():
    assert parse([WEATHER]).scenarios[0].criteria.expect == Expect(
        tools_called=("get_weather",),
        tools_acceptable=(("get_weather",), ("__none__",)),
        tools_not_called=("get_forecast",),
        tool_params=(
            ToolParam(tool="get_weather", param="city", assertion="equals", value="Paris"),
            ToolParam(tool="get_weather", param="unit", assertion="oneOf", value=("c", "f")),
            ToolParam(tool="get_weather", param="x", assertion="notExists"),
        ),
        no_tool_errors=True,
        response_non_empty=True,
        response_contains=("Paris",),
        response_contains_any=(("18", "eighteen"),),
        response_not_contains=("fetchedAt",),
        response_matches=("\\d+",),
        max_latency_ms=5000,
        max_tokens=0,
        stubs=("get_weather",),
    )


@pytest.mark.spec("tool-forge", "Envelope with metadata")
def test_an_envelope_keeps_its_metadata():
    assert parse({"metadata": METADATA, "cases": [case()]}).settings["metadata"] == METADATA


@pytest.mark.parametrize(
    "file",
    [[case()], {"cases": [case()]}, {"metadata": None, "cases": [case()]}],
    ids=["bare", "without", "null"],
)
@pytest.mark.spec("tool-forge", "Bare list without metadata")
def test_a_bare_list_has_no_metadata(file):
    suite = parse(file)
    assert suite.settings["metadata"] is None
    assert len(suite.scenarios) == 1


@pytest.mark.parametrize(
    ("file", "metadata", "id", "tier"),
    [
        ("weather.golden.json", {"tier": "labeled"}, "gs-a", "labeled"),
        ("weather.golden.json", {"tier": "{{tier}}"}, "ls-a", "golden"),
        ("weather.regression.json", None, "a", "regression"),
        ("weather.perturbation.json", None, "a", "perturbation"),
        ("weather.json", None, "gs-a", "golden"),
        ("weather.json", None, "rg-a", "regression"),
        ("weather.json", None, "a", "labeled"),
    ],
    ids=["metadata", "placeholder", "file name", "perturbation", "id", "another id", "nothing"],
)
def test_the_tier_comes_from_metadata_then_name_then_ids(file, metadata, id, tier):
    assert parse({"metadata": metadata, "cases": [case(id)]}, file=file).settings["tier"] == tier


@pytest.mark.parametrize(
    ("file", "metadata", "tool"),
    [
        ("x.golden.json", {"toolName": "get_weather"}, "get_weather"),
        ("get-weather.golden.json", None, "get_weather"),
        ("cases.json", None, "called"),
    ],
    ids=["metadata", "file name", "most often expected"],
)
def test_the_tool_comes_from_metadata_name_or_expectations(file, metadata, tool):
    cases = [case("a", expect={"toolsCalled": ["called"]}), case("b", expect={"toolsCalled": []})]
    assert parse({"metadata": metadata, "cases": cases}, file=file).settings["tool"] == tool


def test_the_hash_is_that_of_the_files_bytes():
    content = json.dumps([case()]).encode()
    (suite,) = parse_files({"a.golden.json": content}, name="a")
    assert suite.settings["eval_file_hash"] == hashlib.sha256(content).hexdigest()[:12]


def test_each_file_of_a_bundle_is_a_suite_named_by_its_stem():
    content = json.dumps([case()]).encode()
    paths = ["evals/a.golden.json", "evals/a.labeled.json", "x/b.golden.json", "y/b.golden.json"]
    suites = parse_files(dict.fromkeys(paths, content), name="bundle")
    assert [suite.name for suite in suites] == ["a.golden", "a.labeled", "x/b.golden", "y/b.golden"]


def test_a_file_alone_has_the_name_of_its_upload():
    assert parse([case()]).name == "suite"


def test_other_json_of_a_bundle_is_left_alone():
    content = json.dumps([case()]).encode()
    files = {"a.golden.json": content, "package.json": b'{"cases": 3}', "tools.json": b'[{"name": "t"}]'}
    assert len(parse_files(files, name="bundle")) == 1


@pytest.mark.parametrize(
    "place", ["seed-manifest.json", "evals/seed-manifest.json", "evals/deep/seed-manifest.json"]
)
@pytest.mark.spec("tool-forge", "Where the seed manifest is")
def test_the_nearest_seed_manifest_is_found(place):
    suite = parse([case()], file="evals/deep/a.golden.json", **{place: {"n": 1}})
    assert (suite.settings["seed"], suite.settings["seed_manifest"]) == ({"n": 1}, place)


def test_the_nearest_seed_manifest_counts():
    near, far = "evals/seed-manifest.json", "seed-manifest.json"
    assert parse([case()], file="evals/a.golden.json", **{near: [1], far: [2]}).settings["seed"] == [1]


def test_without_a_seed_manifest_there_is_no_seed():
    assert parse([case()], **{"other/seed-manifest.json": {}}).settings["seed"] is None


def test_a_file_read_alone_asks_for_its_seed_manifest():
    content = json.dumps([case()]).encode()
    assert "evals/seed-manifest.json" in companions("a.golden.json", content)


def test_a_stub_is_part_of_the_task_and_its_difficulty_is_not():
    assert task_hash(spec(difficulty="edge", bugRef="GH-1", createdAt="now")) == task_hash(spec())
    assert task_hash(spec(stubs={"a": 1})) != task_hash(spec(stubs={"a": 2}))


def test_an_empty_stubs_is_stub_mode():
    found = spec(stubs={}, expect={"noToolErrors": True})
    assert (found.stubs, found.criteria.expect.stubs) == ({}, ())


def test_a_case_without_expect_asserts_nothing():
    assert spec(expect=...).criteria.expect == Expect()


@pytest.mark.parametrize(
    ("written", "field", "read"),
    [
        pytest.param({"toolsCalled": "a"}, "tools_called", ("a",), id="a name"),
        pytest.param({"responseContains": "a"}, "response_contains", ("a",), id="a text"),
        pytest.param({"responseContains": [7.0]}, "response_contains", ("7",), id="a number"),
        pytest.param({"responseMatches": "a"}, "response_matches", ("a",), id="a pattern"),
        pytest.param({"responseContainsAny": "a"}, "response_contains_any", (("a",),), id="a group"),
        pytest.param({"responseContainsAny": ["a", "b"]}, "response_contains_any", (("a", "b"),), id="flat"),
        pytest.param({"responseContainsAny": ["a", ["b"]]}, "response_contains_any", (("a",), ("b",)), id="mixed"),
        pytest.param({"toolsAcceptable": ["__none__"]}, "tools_acceptable", (("__none__",),), id="none"),
        pytest.param({"responseContainsAny": [[7, True]]}, "response_contains_any", (("7", "true"),), id="words"),
    ],
)  # fmt: skip
def test_a_scalar_is_wrapped_into_a_list(written, field, read):
    assert getattr(spec(expect=written).criteria.expect, field) == read


@pytest.mark.parametrize(
    ("assertion", "written", "read"),
    [
        ("equals", 7, "7"),
        ("equals", True, "true"),
        ("equals", None, "null"),
        ("equals", {"a": [1.0]}, '{"a":[1]}'),
        ("equals", ["a"], '["a"]'),
        ("oneOf", [1, "b"], ("1", "b")),
        ("oneOf", "a", "a"),
    ],
)
def test_a_value_to_compare_with_is_read_as_text(assertion, written, read):
    param = {"tool": "t", "paramName": "p", "assertion": assertion, "value": written}
    (found,) = spec(expect={"toolParams": [param]}).criteria.expect.tool_params
    assert found.value == read


def test_a_single_tool_param_is_wrapped():
    param = {"tool": "t", "paramName": "p", "assertion": "exists"}
    assert len(spec(expect={"toolParams": param}).criteria.expect.tool_params) == 1

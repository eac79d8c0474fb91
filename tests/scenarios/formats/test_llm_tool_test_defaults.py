"""Where a file of llm-tool-test has its tool, its pattern and its rubric from, and what it may leave out."""

import pytest
from llm_tool_test_files import CONFIG, SHORT, changed, read, read_one, upload

from evaluators.grading.judges.rubric import Criterion
from evaluators.tool_use.tool import Tool

SETTINGS = """\
results_path = "results"
[target]
binary = "t"
command_pattern = "t (\\\\w+)"
[target.env]
MODE = "x"
[tools.codex]
command = "codex"
models = ["a"]
[profiles.quick]
tools = ["codex"]
[models.a]
input_cost_per_1k_tokens = 0.1
output_cost_per_1k_tokens = 0.2
"""


def test_the_tool_comes_from_the_settings_when_asked():
    for scenario in (SHORT.replace("{binary: t}", "from_config"), SHORT.replace("target: {binary: t}\n", "")):
        tool = read_one({"a.yaml": scenario.encode(), CONFIG: SETTINGS.encode()}).criteria.tool
        assert tool == Tool(binary="t", command_pattern="t (\\w+)", env={"MODE": "x"})


def test_tools_profiles_and_prices_of_the_settings_are_kept():
    settings = read({"a.yaml": SHORT.encode(), CONFIG: SETTINGS.encode()}).settings
    assert settings["tools"] == {"codex": {"name": "", "command": "codex", "models": ["a"]}}
    assert settings["profiles"] == {"quick": {"name": "", "tools": ["codex"], "models": []}}
    assert settings["models"]["a"]["input_cost_per_1k_tokens"] == 0.1


PATTERNS = {
    "the scenario's": ("{binary: t, command_pattern: own}", SETTINGS, "own"),
    "the settings'": ("{binary: t}", SETTINGS, "t (\\w+)"),
    "not that of another tool": ("{binary: other}", SETTINGS, ""),
    "left to the run": ("{binary: t}", "", ""),
    "left to the run without any tool": ("{}", "", ""),
}


@pytest.mark.parametrize(("target", "settings", "expected"), PATTERNS.values(), ids=PATTERNS)
@pytest.mark.spec("llm-tool-test", "The command pattern, per scenario or for all")
def test_the_nearest_command_pattern_counts(target, settings, expected):
    files = {"a.yaml": SHORT.replace("{binary: t}", target).encode()}
    if settings:
        files[CONFIG] = settings.encode()
    assert read_one(files, command_pattern="project").criteria.tool.command_pattern == expected


@pytest.mark.spec("llm-tool-test", "Rubrics with weighted criteria of the scenario")
def test_a_rubric_may_be_inline():
    files = upload(
        changed("rubric: rubrics/style.yaml", "rubric: {name: own, criteria: [{id: a, weight: 1}]}")
    )
    rubric = read_one(files).criteria.judge.rubric
    assert (rubric.name, rubric.criteria) == ("own", (Criterion(id="a", weight=1),))


@pytest.mark.parametrize("place", ["s/r.yaml", "r.yaml", "fixtures/r.yaml"])
def test_a_rubric_is_found_from_scenario_or_root(place):
    scenario = SHORT + "evaluation: {judge: {rubric: r.yaml, pass_threshold: 0.5}}\n"
    files = {"s/a.yaml": scenario.encode(), place: b"criteria: [{id: a, weight: 1}]"}
    assert read_one(files).criteria.judge.rubric.name == place


@pytest.mark.spec("llm-tool-test", "The judge is optional")
def test_a_judge_that_is_off_needs_no_rubric():
    suite = read(upload(changed("    rubric: rubrics/style.yaml\n", "    enabled: false\n")))
    assert suite.scenarios[0].criteria.judge is None
    assert [lint.what for lint in suite.lints] == ["The judge has no 'rubric'."]


def test_a_judge_that_is_off_keeps_its_rubric():
    judge = read_one(upload(changed("    model: small\n", "    enabled: false\n"))).criteria.judge
    assert (judge.enabled, len(judge.rubric.criteria)) == (False, 2)


def test_a_gates_limit_may_be_spelled_both_ways():
    spec = read_one(upload(changed("timeout_secs: 3", "timeout_seconds: 3")))
    assert spec.criteria.gates[0].timeout_seconds == 3


def test_a_catastrophic_pattern_is_accepted():
    files = {
        "a.yaml": SHORT.replace("file_exists, path: x", "file_matches, path: x, pattern: (a+)+$").encode()
    }
    assert read_one(files).criteria.gates[0].pattern == "(a+)+$"


def test_a_thousand_scenarios_are_one_suite():
    files = {f"{n}.yaml": SHORT.replace("name: a", f"name: s{n}").encode() for n in range(1000)}
    assert len(read(files).scenarios) == 1000

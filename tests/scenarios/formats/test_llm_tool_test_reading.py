"""What llm-tool-test files become."""

import pytest
from llm_tool_test_files import CONFIG, SCENARIO, SHORT, read, read_one, upload

from evaluators.grading.evaluate import CompositeWeights
from evaluators.grading.gates.command_gates import CommandSucceeds
from evaluators.grading.gates.informing_scripts import EvaluatorScript
from evaluators.grading.gates.transcript_gate import NoTranscriptErrors
from evaluators.grading.judges.rubric import Criterion
from evaluators.tool_use.tool import Tool
from scenarios.formats.llm_tool_test import matches
from scenarios.formats.parsed import FixtureFile
from scenarios.spec import Cost, MatrixEntry, PostScript, TrialLimits


def test_every_field_is_read():
    spec = read_one(upload())
    assert (spec.key, spec.description, spec.prompt, spec.fixture) == (
        "add-task",
        "Adds a task.",
        "Add a task.",
        "basic",
    )
    assert spec.setup == ("taskmgr init",)
    assert spec.post == (PostScript(command="./after.sh", timeout_seconds=5),)
    assert spec.limits == TrialLimits(timeout_seconds=60, max_turns=9)
    assert (spec.tags, spec.tier, spec.cost) == (("quick", "tasks"), 2, Cost(max_usd=0.5, cache=False))
    assert spec.matrix == (MatrixEntry(target="codex", models=("a", "b")), MatrixEntry(target="claude"))
    assert (spec.file, spec.line) == ("add-task.yaml", 1)


@pytest.mark.spec("llm-tool-test", "Gates in a scenario file")
def test_every_criterion_is_read():
    criteria = read_one(upload()).criteria
    assert criteria.tool == Tool(
        binary="taskmgr",
        command_pattern="taskmgr\\s+(\\S+)",
        health_check="taskmgr --help",
        version_command="taskmgr --version",
        env={"HOME_DIR": "${HOME}/x", "PORT": "8080", "DEBUG": "true"},
    )
    assert criteria.gates == (
        CommandSucceeds(command="taskmgr doctor", timeout_seconds=3),
        NoTranscriptErrors(),
    )
    assert criteria.scripts == (EvaluatorScript(command="./measure.sh", name="size"),)
    assert criteria.composite == CompositeWeights(gate_weight=0.5, judge_weight=0.55, interaction_weight=0.10)


@pytest.mark.spec("llm-tool-test", "Rubrics with weighted criteria of the scenario")
def test_the_judge_and_its_rubric_are_read():
    judge = read_one(upload()).criteria.judge
    assert (judge.enabled, judge.pass_threshold, judge.model, judge.when, judge.judgings) == (
        True,
        0.7,
        "small",
        "gates_pass",
        3,
    )
    assert judge.rubric.criteria == (
        Criterion(id="correct", weight=0.6, description="Works."),
        Criterion(id="neat", weight=0.4),
    )
    assert (judge.rubric.name, judge.rubric.require_fields) == ("rubrics/style.yaml", ("scores",))


def test_a_folder_is_one_suite_with_its_fixtures():
    suite = read(upload(**{"b.yml": SHORT}), executables=frozenset({"templates/basic/run.sh"}))
    assert (suite.name, suite.format, suite.lints) == ("tasks", "llm_tool_test", ())
    assert [scenario.key for scenario in suite.scenarios] == ["add-task", "a"]
    assert suite.fixtures == {
        "basic": (
            FixtureFile("AGENTS.md", b"Read me.\n"),
            FixtureFile("run.sh", b"#!/bin/sh\n", executable=True),
        )
    }


def test_short_forms_are_accepted():
    spec = read_one({"a.yaml": SHORT.encode()})
    assert (spec.prompt, spec.fixture, spec.matrix) == ("Do it.", None, None)
    assert [gate.type for gate in spec.criteria.gates] == ["file_exists"]


def test_keys_without_a_value_count_as_left_out():
    spec = read_one({"a.yaml": (SHORT + "tags:\nrun:\n  timeout_secs:\n").encode()})
    assert (spec.tags, spec.limits) == ((), TrialLimits())


PLACES = [
    "fixtures/templates/x/f",
    "llm-test-fixtures/templates/x/f",
    "templates/x/f",
    "x/f",
    "s/templates/x/f",
    "s/x/f",
    "own/place/templates/x/f",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_template_is_found_from_scenario_or_root(place):
    files = {
        "s/a.yaml": (SHORT + "template_folder: x/\n").encode(),
        place: b"1",
        CONFIG: b'fixtures_path = "own/place"',
    }
    suite = read(files)
    assert (suite.scenarios[0].fixture, suite.fixtures) == ("x", {"x": (FixtureFile("f", b"1"),)})


def test_templates_of_the_same_name_in_two_places_stay_two():
    files = {}
    for folder in ("s", "t"):
        scenario = SHORT.replace("name: a", f"name: {folder}") + "template_folder: x\n"
        files |= {f"{folder}/a.yaml": scenario.encode(), f"{folder}/templates/x/f": folder.encode()}
    suite = read(files)
    assert [scenario.fixture for scenario in suite.scenarios] == ["s/templates/x", "t/templates/x"]
    assert suite.fixtures["t/templates/x"] == (FixtureFile("f", b"t"),)


def test_a_scenarios_folder_is_not_part_of_a_fixture():
    files = {"x/scenarios/a.yaml": (SHORT + "template_folder: x\n").encode(), "x/f": b"1"}
    assert read(files).fixtures == {"x": (FixtureFile("f", b"1"),)}


OTHERS = {
    "templates/basic/broken.yaml": "a: [",
    "templates/basic/scenario.yaml": SCENARIO,
    "targets.yaml": "targets:\n- name: local\n  provider: mock\n",
    "README.md": "# Read me",
    "compose.yaml": "services: {}\n",
    "tsconfig.json": "{ // with a comment\n}",
    "values.yaml": "name: chart\ntags: [a]\n",
}


def test_other_files_are_ignored():
    suite = read(upload(**OTHERS))
    assert [scenario.key for scenario in suite.scenarios] == ["add-task"]
    assert suite.lints == ()


def test_a_fixture_may_contain_broken_yaml_and_scenarios():
    files = {
        "a.yaml": (SHORT + "template_folder: work\n").encode(),
        "work/b.yaml": b"a: [",
        "work/c.yaml": SHORT.encode(),
    }
    suite = read(files)
    assert [file.path for file in suite.fixtures["work"]] == ["b.yaml", "c.yaml"]
    assert len(suite.scenarios) == 1


def test_the_targets_file_is_kept_as_text():
    suite = read(upload(**{"targets.yaml": OTHERS["targets.yaml"], "deep/targets.yaml": "targets: []"}))
    assert (suite.targets_file, suite.targets_text) == ("targets.yaml", OTHERS["targets.yaml"])


MEANT = {
    "name, task and gates": ({"name": 1, "task": 1, "gates": []}, True),
    "task and evaluation": ({"task": 1, "evaluation": 1}, True),
    "misspelled name": ({"nmae": 1, "task": 1, "evaluation": 1}, True),
    "a rubric": ({"criteria": [], "output": {}}, False),
    "a targets file": ({"targets": []}, False),
    "a chart": ({"name": 1, "tags": []}, False),
    "a list": ([], False),
}


@pytest.mark.parametrize(("value", "expected"), MEANT.values(), ids=MEANT)
def test_it_knows_its_own_files(value, expected):
    assert matches("a.yaml", value) is expected
    assert matches("a.json", value) is False

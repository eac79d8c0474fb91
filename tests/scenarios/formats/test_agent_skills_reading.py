"""Skills with evals, as people write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scenarios.bundles import read_path, with_tool
from scenarios.formats.parsed import ScenarioFileError
from scenarios.guidance import named_guidelines, suite_guidance
from scenarios.reading import describe_suite, restore_suite
from scenarios.storing import suite_hash
from tests.scenarios.formats.agent_skills_files import SAMPLES, SKILL, case, evals, parse, skill


def statements_of(spec):
    return spec.criteria.judge.rubric.criteria if spec.criteria.judge else ()


def fixture_paths(suite, key):
    spec = next(each for each in suite.scenarios if each.key == key)
    return [file.path for file in suite.fixtures[spec.fixture]]


@pytest.mark.parametrize("name", SAMPLES)
def test_each_sample_has_the_counts_that_were_made_by_hand(name):
    sample = SAMPLES[name]
    suites = parse(sample.files)
    specs = [spec for suite in suites for spec in suite.scenarios]
    assert {suite.name: len(suite.scenarios) for suite in suites} == sample.suites
    assert sum(len(statements_of(spec)) for spec in specs) == sample.statements
    assert sum(len(spec.criteria.gates) for spec in specs) == sample.gates
    assert {lint.id for suite in suites for lint in suite.lints} == set(sample.lints)
    own = [
        file
        for suite in suites
        for spec in suite.scenarios
        for file in suite.fixtures[spec.fixture]
        if not file.path.startswith(".agents/") and spec.fixture == spec.key
    ]
    assert len(own) == sample.inputs


@pytest.mark.parametrize("name", SAMPLES)
def test_no_workspace_has_the_evals(name):
    for suite in parse(SAMPLES[name].files):
        for fixture in suite.fixtures.values():
            assert not [
                file.path for file in fixture if file.path.endswith(("evals.json", "gates.yaml", "eval.json"))
            ]


def test_a_trial_passes_when_all_its_statements_hold():
    (suite,) = parse(
        skill(evals(case(expected_output="A note.", expectations=["It exists.", "It is short."])))
    )
    judge = suite.scenarios[0].criteria.judge
    assert (judge.pass_threshold, judge.rubric.form, judge.rubric.expected) == (1.0, "statements", "A note.")
    assert [(one.id, one.weight, one.description) for one in judge.rubric.criteria] == [
        ("it_exists", 1.0, "It exists."),
        ("it_is_short", 1.0, "It is short."),
    ]


def test_equal_statements_have_ids_of_their_own():
    long = "The answer explains in detail and with examples why " + "and why " * 20
    (suite,) = parse(skill(evals(case(assertions=[long, long, "!", "?"]))))
    ids = [one.id for one in statements_of(suite.scenarios[0])]
    assert len(set(ids)) == 4
    assert max(map(len, ids)) <= 62


@pytest.mark.parametrize(
    ("id", "key"), [(0, "eval-0"), (7, "eval-7"), ("add-note", "add-note"), (" spaced ", "spaced")]
)
def test_an_id_becomes_the_key(id, key):
    (suite,) = parse(skill(evals(case(id, expected_output="x", eval_name="Ocean"))))
    assert (suite.scenarios[0].key, suite.scenarios[0].description) == (key, "Ocean")


def test_the_skill_is_the_suites_guidance_and_not_its_content():
    files = skill(evals(case(expected_output="x"), case(2, files=["data.csv"], expected_output="x")))
    files |= {"data.csv": "1", "scripts/run.sh": "echo", "assets/logo.png": b"\x89PNG\xff\x00"}
    (suite,) = parse(files, executables=frozenset(("scripts/run.sh",)))
    guidance = suite_guidance(suite, named_guidelines(suite))
    assert [(file.path, file.executable) for file in guidance] == [
        (".agents/skills/notetool/SKILL.md", False),
        (".agents/skills/notetool/assets/logo.png", False),
        (".agents/skills/notetool/data.csv", False),
        (".agents/skills/notetool/scripts/run.sh", True),
    ]
    (changed,) = parse(files | {"SKILL.md": SKILL + "\nMore."})
    assert suite_hash(changed, named_guidelines(changed)) == suite_hash(suite, named_guidelines(suite))
    assert suite_guidance(changed, named_guidelines(changed)) != guidance


def test_files_lie_under_the_path_that_the_case_writes():
    sample = SAMPLES["files beside evals.json, in the skill and at the root"]
    (suite,) = parse(sample.files)
    assert "files/near.json" in fixture_paths(suite, "eval-1")
    assert {"examples/own.txt", "data/root.csv"} <= set(fixture_paths(suite, "eval-2"))
    assert "evals/files/near.json" in fixture_paths(suite, "eval-3")


def test_a_plug_in_brings_all_its_skills():
    (suite,) = parse(SAMPLES["a plug-in with two skills"].files)
    assert fixture_paths(suite, "eval-1") == [
        ".agents/skills/notetool/SKILL.md",
        ".agents/skills/planner/SKILL.md",
    ]
    assert suite.scenarios[0].prompt == "/desk:plan diagnose"


def test_trigger_queries_ask_whether_the_skill_was_loaded():
    suites = {suite.name: suite for suite in parse(SAMPLES["a list of trigger queries"].files)}
    specs = suites["notetool-triggers"].scenarios
    assert [(spec.key, spec.tags, spec.criteria.gates[0].expected) for spec in specs] == [
        ("note-this-down-for-me", ("should-trigger",), True),
        ("what-is-a-notebook", ("should-not-trigger",), False),
        ("记一下", ("should-trigger",), True),
    ]
    assert {spec.criteria.gates[0].skill for spec in specs} == {"notetool"}


def test_gates_of_all_cases_come_before_those_of_one():
    (suite,) = parse(SAMPLES["gates beside the statements"].files)
    first, second = suite.scenarios
    assert [gate.type for gate in first.criteria.gates] == ["no_transcript_errors", "file_exists"]
    assert first.criteria.tool.binary == "notetool"
    assert (second.tags, second.limits.timeout_seconds) == (("slow",), 60)
    assert fixture_paths(suite, "eval-1") == [".agents/skills/notetool/SKILL.md", "notes.txt"]


def test_the_tool_may_have_the_keys_of_a_target():
    gates = "tool:\n  binary: ./notetool\n  version_command: ./notetool --version\n"
    (suite,) = parse(skill(evals(case(expected_output="x")), **{"evals/gates.yaml": gates}))
    assert suite.scenarios[0].criteria.tool.version_command == "./notetool --version"


def test_a_project_with_a_pattern_needs_no_tool():
    (suite,) = parse(skill(evals(case(expected_output="x"))), command_pattern="^notetool")
    assert suite.lints == ()
    assert suite.scenarios[0].criteria.tool is not None


def test_the_tool_is_suggested_from_the_skills_code():
    text = (
        SKILL
        + "\nRun `git status`, then:\n\n```console\n$ cd notes\n$ ghx sync --all\n$ ghx sync\nok: 3\n$ ghx log\n```\n"
    )
    (suite,) = parse(skill(evals(case(expected_output="x"))) | {"SKILL.md": text})
    (lint,) = suite.lints
    assert "The skill's code runs `ghx` 3 times." in lint.what
    assert "--tool ghx" in lint.fix


@pytest.mark.parametrize("gates", ["", "gates:\n  - type: no_transcript_errors\n"])
def test_an_option_names_the_tool(tmp_path, gates):
    folder = write(
        tmp_path, skill(evals(case(expected_output="x"))) | ({"evals/gates.yaml": gates} if gates else {})
    )
    bundle = with_tool(read_path(folder), "notetool")
    (suite,) = parse(dict(bundle.files))
    assert suite.scenarios[0].criteria.tool.binary == "notetool"
    assert len(suite.scenarios[0].criteria.gates) == (1 if gates else 0)


def test_an_option_does_not_replace_the_tool_of_the_file(tmp_path):
    folder = write(tmp_path, skill(evals(case(expected_output="x"))) | {"evals/gates.yaml": "tool: other\n"})
    with pytest.raises(ScenarioFileError, match="names a tool already"):
        with_tool(read_path(folder), "notetool")


def test_an_option_without_a_skill_is_an_error(tmp_path):
    with pytest.raises(ScenarioFileError, match=r"the upload has no evals/evals\.json"):
        with_tool(read_path(write(tmp_path, {"notes.txt": "x"})), "notetool")


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_a_front_matter_that_is_no_yaml_is_read_line_by_line():
    text = "---\nname: notetool\ndescription: Use it: for notes: [all\n---\n"
    (suite,) = parse(skill(evals(case(expected_output="x"))) | {"SKILL.md": text})
    assert suite.settings["skills"] == ["notetool"]
    assert [(lint.file, lint.line, lint.id) for lint in suite.lints] == [("SKILL.md", 3, "format/not-yaml")]


def test_other_keys_are_kept_as_metadata():
    (suite,) = parse(skill(evals(case(expected_output="x", difficulty="easy", context={"os": "linux"}))))
    assert suite.scenarios[0].metadata == {"difficulty": "easy", "context": {"os": "linux"}}


def test_a_suite_arrives_from_another_process_with_its_guidance():
    files = {path: text.encode() for path, text in skill(evals(case(expected_output="x"))).items()}
    (suite,) = parse(files)
    assert restore_suite(describe_suite(suite, files), files) == suite


def test_scenarios_in_a_skills_references_are_no_suite():
    files = skill(evals(case(expected_output="x"))) | {
        "references/example.yaml": "name: a\ntask: {prompt: x}\nevaluation: {gates: []}\n",
        "assets/broken.json": "{",
        "evals/files/evals.json": json.dumps({"skill_name": "other", "evals": []}),
    }
    files["evals/evals.json"] = evals(case(files=["evals/files/evals.json"], expected_output="x"))
    assert [suite.name for suite in parse(files)] == ["notetool"]


def test_a_hint_of_many_cases_is_said_once():
    bare = {"prompt": "Add X"}
    (suite,) = parse(skill(json.dumps([bare, bare, {**bare, "expected_output": "X exists."}])))
    said = {lint.id: lint.what for lint in suite.lints}
    assert said["format/no-id"].endswith("The same holds for 2 more cases.")
    assert said["format/nothing-to-judge"].endswith("The same holds for 1 more case.")
    assert len(suite.lints) == 3


def test_a_pattern_with_a_text_is_called_by_it():
    scorer = {"type": "regex", "pattern": "add", "text": "It adds a note."}
    (suite,) = parse(skill(evals(case(assertions=[scorer]))))
    assert [gate.name for gate in suite.scenarios[0].criteria.gates] == ["It adds a note."]

"""Whatever comes in, suites come out or one error with problems; nothing else is ever raised."""

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llm_tool_test_files import RUBRIC, SCENARIO, upload

from scenarios.formats import parse_files
from scenarios.formats.parsed import ScenarioFileError

CALM = settings(max_examples=150, suppress_health_check=list(HealthCheck))

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["", "../x", "$[", "(", "len >= 1"])
)
keys = st.sampled_from(
    [
        "name",
        "task",
        "prompt",
        "target",
        "binary",
        "env",
        "command_pattern",
        "evaluation",
        "gates",
        "type",
        "path",
        "pattern",
        "assertion",
        "command",
        "judge",
        "rubric",
        "criteria",
        "id",
        "weight",
        "pass_threshold",
        "composite",
        "gate_weight",
        "tool_matrix",
        "tool",
        "models",
        "run",
        "timeout_secs",
        "tags",
        "tier",
        "template_folder",
        "setup",
        "commands",
        "scripts",
        "post",
        "evaluators",
    ]
)
values = st.recursive(
    scalars | st.sampled_from(["file_matches", "command_json_path", "min_notes", "from_config"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=20,
)


def parses_or_refuses(files):
    try:
        suites = parse_files(files, name="fuzz")
    except ScenarioFileError as error:
        assert all(problem.what and problem.id and problem.line >= 1 for problem in error.problems)
    else:
        assert suites


@CALM
@given(st.binary(max_size=300), st.sampled_from(["a.yaml", "a.json", "a.yml", "a.eval.json"]))
def test_any_bytes(content, name):
    parses_or_refuses({name: content})


@CALM
@given(st.dictionaries(keys, values, max_size=8))
def test_any_scenario(value):
    whole = {"name": "a", "task": "x", "evaluation": {}, **value}
    parses_or_refuses({"a.yaml": yaml.safe_dump(whole).encode()})


@CALM
@given(st.dictionaries(keys, values, max_size=6))
def test_any_gate(value):
    for kind in ("file_matches", "command_json_path", "min_links", "link_exists"):
        gate = {**value, "type": kind}
        parses_or_refuses({"a.yaml": yaml.safe_dump({"name": "a", "task": "x", "gates": [gate]}).encode()})


@CALM
@given(st.text(max_size=60))
def test_any_path_pattern_and_assertion(text):
    gates = [
        {"type": "command_json_path", "command": "x", "path": text, "assertion": text},
        {"type": "file_matches", "path": text, "pattern": text},
    ]
    parses_or_refuses({"a.yaml": yaml.safe_dump({"name": "a", "task": "x", "gates": gates}).encode()})


@CALM
@given(st.integers(0, len(SCENARIO) - 1), st.integers(0, 40), st.text(max_size=5))
def test_any_damage_to_a_scenario(start, length, text):
    damaged = (SCENARIO[:start] + text + SCENARIO[start + length :]).encode("utf-8", "surrogatepass")
    parses_or_refuses(upload() | {"add-task.yaml": damaged})


@CALM
@given(st.integers(0, len(RUBRIC) - 1), st.integers(0, 40), st.binary(max_size=5), st.binary(max_size=40))
def test_damaged_files_next_to_a_scenario_never_crash(start, length, noise, settings_file):
    rubric = RUBRIC.encode()
    damaged = rubric[:start] + noise + rubric[start + length :]
    parses_or_refuses(upload() | {"rubrics/style.yaml": damaged, "llm-tool-test-config.toml": settings_file})

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from evaluators.grading.gates import GATES, score_gates
from evaluators.grading.gates.base_gate import EXCERPT, NOT_RUN
from evaluators.json_values import CUT
from evaluators.redaction import redact_json
from tests.evaluators.grading.gates.gate_samples import check, gate_of
from tests.evaluators.samples import FakeWorkspace, evidence, printed


@pytest.mark.parametrize(
    ("gate", "result", "passed", "message"),
    [
        pytest.param({"type": "command_succeeds"}, printed(), True, "`run` exited with 0.", id="succeeds"),
        pytest.param({"type": "command_succeeds"}, printed(exit_code=3), False, "`run` exited with 3.", id="exit code"),
        pytest.param({"type": "command_output_contains", "substring": "ab"}, printed("xaby", exit_code=2), True, "`run` exited with 2; its output contains 'ab'.", id="contains without success"),
        pytest.param(
            {"type": "command_output_contains", "substring": "ab", "require_success": True},
            printed("ab", exit_code=2),
            False,
            "`run` exited with 2, but the gate requires success.",
            id="success required",
        ),
        pytest.param({"type": "command_output_contains", "substring": "ab"}, printed("", stderr="ab"), False, "`run` exited with 0; its output does not contain 'ab'.", id="stderr is not looked at"),
        pytest.param({"type": "command_output_matches", "pattern": r"a-\d+"}, printed("xa-12"), True, r"`run` exited with 0; its output matches 'a-\d+'.", id="matches"),
        pytest.param({"type": "command_output_matches", "pattern": "^b"}, printed("ab"), False, "`run` exited with 0; its output does not match '^b'.", id="does not match"),
        pytest.param({"type": "script", "description": "d"}, printed("x", exit_code=1), False, "d: exited with 1.", id="script"),
        pytest.param({"type": "script", "description": "d"}, printed('{"passed": true, "message": "m"}', exit_code=1), True, "m", id="script says over the exit code"),
        pytest.param({"type": "script", "description": "d"}, printed('hi\n{"passed": false}\n\n'), False, "d", id="last line"),
        pytest.param({"type": "script", "description": "d"}, printed('{"passed": 1}'), True, "d: exited with 0.", id="no boolean"),
    ],
)  # fmt: skip
@pytest.mark.spec("llm-tool-test", "Gates on commands")
def test_gates_on_commands(gate: dict[str, Any], result: Any, passed: bool, message: str) -> None:
    score = check(gate, result)
    assert (score.layer, score.name, score.passed, score.value) == (
        "gates",
        gate["type"],
        passed,
        float(passed),
    )
    assert score.message == message
    assert score.detail["command"] == "run"
    assert score.detail["exit_code"] == result.exit_code


@pytest.mark.spec("llm-tool-test", "Script gate")
@pytest.mark.hostile
def test_a_script_keeps_no_detail_that_is_nested_too_deep() -> None:
    score = check({"type": "script"}, printed('{"passed": true, "detail": ' + "[" * 800 + "]" * 800 + "}"))
    assert CUT in json.dumps(redact_json(score.detail))


def test_a_script_keeps_its_detail() -> None:
    score = check({"type": "script"}, printed('{"passed": true, "detail": {"n": 3}}'))
    assert score.detail["detail"] == {"n": 3}


def test_a_command_runs_with_its_limits_and_environment() -> None:
    workspace = FakeWorkspace(results={"run": printed()})
    gate = gate_of.validate_python(
        {"type": "command_succeeds", "command": "run", "timeout_seconds": 7, "network": True}
    )
    gate.check(evidence(workspace=workspace, command_env={"A": "1"}))
    assert workspace.asked == [{"command": "run", "timeout_seconds": 7, "env": {"A": "1"}, "network": True}]


def test_a_command_that_takes_too_long_fails() -> None:
    score = check(
        {"type": "command_succeeds", "timeout_seconds": 1.5}, printed(exit_code=None, timed_out=True)
    )
    assert (score.passed, score.message) == (False, "`run` timed out after 1.5 s.")


def test_a_command_that_cannot_start_is_an_error() -> None:
    score = check({"type": "command_succeeds"}, printed(exit_code=None, error="No sandbox here."))
    assert (score.passed, score.error) == (None, "No sandbox here.")


def test_a_blank_command_fails() -> None:
    assert check({"type": "command_succeeds", "command": "  "}).message == "The command is blank."


@pytest.mark.parametrize("kind", sorted(name for name, gate in GATES.items() if gate.needs_workspace))
def test_without_a_workspace_nothing_is_decided(kind: str) -> None:
    texts = {"command": "x", "substring": "x", "pattern": "x", "path": "$", "assertion": "exists"}
    fields = {name: texts[name] for name in GATES[kind].model_fields if name in texts}
    score = gate_of.validate_python({"type": kind, **fields}).check(evidence())
    assert (score.passed, score.value, score.message) == (None, None, NOT_RUN)


def test_a_long_output_is_kept_in_part() -> None:
    score = check({"type": "command_succeeds"}, printed("a" * 10_000 + "z"))
    assert len(score.detail["stdout"]) < EXCERPT + 100
    assert score.detail["stdout"].endswith("z")
    assert "8001 characters left out" in score.detail["stdout"]


@pytest.mark.parametrize(
    "gate",
    [
        {"type": "command_output_matches", "command": "x", "pattern": "("},
        {"type": "file_matches", "path": "x", "pattern": "("},
        {"type": "command_json_path", "command": "x", "path": "$[", "assertion": "exists"},
        {"type": "command_json_path", "command": "x", "path": "$", "assertion": "is"},
        {"type": "command_succeeds", "command": "x", "timeout_seconds": 0},
        {"type": "command_succeeds", "command": "x", "substring": "y"},
        {"type": "min_notes", "count": 3},
    ],
    ids=lambda gate: f"{gate['type']}",
)
def test_a_gate_that_cannot_work_is_not_made(gate: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        gate_of.validate_python(gate)


@pytest.mark.spec("llm-tool-test", "All gates run, in order, each with a message")
def test_all_gates_run_in_order() -> None:
    gates = [{"type": "file_exists", "path": path} for path in ("b", "a", "c")]
    given = evidence(workspace=FakeWorkspace({"a": ""}))
    found = score_gates([gate_of.validate_python(gate) for gate in gates], given)
    assert [(score.detail["path"], score.passed) for score in found] == [
        ("b", False),
        ("a", True),
        ("c", False),
    ]

"""Variables that evalhub sets, in `target.env` and in commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.calling import call
from tests.runs.carried import one, shell_project

CASE = Path(__file__).parents[2] / "files/cases/06"
pytestmark = pytest.mark.django_db(transaction=True)


def ran(path: Path, *words: str) -> list[dict[str, Any]]:
    """Return the trials of a run on the case's target."""
    targets = ("--targets", str(CASE / "targets.yaml"), "--target", "quick")
    (run,) = call("run_scenarios", str(path), *targets, "--now", "--json", *words).document["runs"]
    found: list[dict[str, Any]] = run["trials"]
    return found


def test_the_workspaces_path_is_known_in_target_env():
    (trial,) = ran(CASE / "suite.yaml")
    assert (trial["outcome"], trial["error"]) == ("pass", "")
    assert trial["answer"].strip().endswith("/.store")
    assert "LLM_TOOL_TEST" not in trial["answer"]


def test_all_scenarios_of_a_suite_that_uses_it_load_and_start():
    # Shaped as the eight scenarios of the one public suite: template folders, tags, tiers, a matrix, rubrics, setup.
    checked = call("check_scenarios", str(CASE / "public"), "--strict")
    assert (checked.code, checked.out) == (0, "No problems.\n")
    trials = ran(CASE / "public", "--no-judge")
    assert [trial["error"] for trial in trials] == [""] * 8
    assert {trial["outcome"] for trial in trials} == {"pass", "fail"}


def test_setup_agent_gates_and_scripts_see_the_same_values(monkeypatch):
    monkeypatch.setenv("OUTSIDE", "from outside")
    # A worker's own value is not the trial's.
    monkeypatch.setenv("LLM_TOOL_TEST_SCENARIO", "another")
    env = {
        "ALL": "${LLM_TOOL_TEST_SCENARIO} ${LLM_TOOL_TEST_AGENT} ${OUTSIDE} ${HOME}",
        "PATH": "${LLM_TOOL_TEST_FIXTURE_DIR}/bin:${PATH}",
    }
    show = 'printf "%s|%s" "$ALL" "$PATH"'
    trial = one(
        shell_project(),
        prompt=f"{show}; {show} > agent",
        setup=[f"{show} > setup"],
        post=[{"command": f"{show} > post"}],
        criteria={
            "tool": {"binary": "t", "env": env},
            "gates": [
                {"type": "command_succeeds", "command": f"{show} > gate; cmp setup agent && cmp post agent"},
                {"type": "script", "command": f"cmp gate agent && {show} | cmp - agent"},
            ],
        },
    )
    assert [gate["passed"] for gate in trial.scores if gate["layer"] == "gates"] == [True, True]
    values, path = trial.answer.split("|")
    assert values.startswith("bad shell [REDACTED] /")
    assert path.split(":")[0].endswith("/bin") and "$" not in trial.answer and len(path.split(":")) > 1


def test_a_health_check_sees_them_too(tmp_path):
    text = (CASE / "suite.yaml").read_text()
    check = '  health_check: test "$NOTE_STORE" = "$LLM_TOOL_TEST_FIXTURE_DIR/.store" && pwd\n'
    (tmp_path / "s.yaml").write_text(text.replace("  env:\n", f"{check}  env:\n"))
    (trial,) = ran(tmp_path / "s.yaml")
    assert trial["outcome"] == "pass"


def test_a_graded_gate_sees_them_too(tmp_path):
    text = (CASE / "suite.yaml").read_text().replace("substring: /.store", "substring: LLM_TOOL_TEST")
    request = {"suite": {"name": "s.yaml", "text": text}, "evidence": {"exit_code": 0}}
    (tmp_path / "request.json").write_text(json.dumps(request))
    (gate,) = call("grade", str(tmp_path / "request.json"), "--json").document["gates"]
    assert gate["passed"] is False


def test_a_check_names_variables_that_will_be_missing(tmp_path, monkeypatch):
    monkeypatch.delenv("NOT_THERE", raising=False)
    text = (CASE / "suite.yaml").read_text()
    (tmp_path / "s.yaml").write_text(text.replace("/.store", "/${NOT_THERE}", 1))
    checked = call("check_scenarios", str(tmp_path / "s.yaml"), "--json")
    (problem,) = checked.document["problems"]
    assert (checked.code, problem["id"], problem["line"]) == (0, "format/missing-variable", 5)
    assert "'NOTE_STORE' needs the variable NOT_THERE" in problem["what"]
    monkeypatch.setenv("NOT_THERE", "now")
    assert call("check_scenarios", str(tmp_path / "s.yaml")).out == "No problems.\n"


def test_a_check_reads_the_settings_tool_too(tmp_path, monkeypatch):
    monkeypatch.delenv("NOT_THERE", raising=False)
    (tmp_path / "llm-tool-test-config.toml").write_text(
        '[target]\nbinary = "n"\n[target.env]\nA = "${NOT_THERE}"\n'
    )
    (tmp_path / "s.yaml").write_text(
        "name: a\ntarget: from_config\ntask: x\ngates: [{type: file_exists, path: x}]\n"
    )
    (problem,) = call("check_scenarios", str(tmp_path), "--json").document["problems"]
    assert (problem["file"], problem["where"]) == ("llm-tool-test-config.toml", "target.env.A")

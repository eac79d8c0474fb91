"""The examples of docs/ci.md: they parse, keep secrets from forks, and their commands work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import parse

import pytest
import yaml

from tests.embedded_data import make_data

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "scenarios" / "examples"
EXPRESSION = re.compile(r"\$\{\{[^}]*\}\}")
EVALS, PAID, GITLAB = (
    yaml.safe_load(text)
    for text in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "ci.md").read_text(), re.DOTALL)
)


def steps_of(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    (job,) = workflow["jobs"].values()
    steps: list[dict[str, Any]] = job["steps"]
    return steps


def triggers_of(workflow: dict[Any, Any]) -> Any:
    """Return a workflow's triggers; YAML 1.1 reads their key `on` as true."""
    return workflow.get("on", workflow.get(True))


def commands_of(scripts: list[str]) -> list[str]:
    """Return the scripts that call evalhub."""
    return [script for script in scripts if "manage.py" in script]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder as CI has it: evalhub in `.evalhub`, with its environment."""
    programs = tmp_path / ".evalhub" / ".venv" / "bin"
    programs.mkdir(parents=True)
    make_data(tmp_path / ".evalhub-data")
    (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (programs / "python").chmod(0o755)
    (tmp_path / ".evalhub" / "manage.py").symlink_to(ROOT / "manage.py")
    (tmp_path / "targets.yaml").write_text(
        "targets:\n  - {name: fixed, provider: mock, response: Done., cost_usd: 0.01}\n"
    )
    return tmp_path


def execute(
    checkout: Path, script: str, given: dict[str, Any], target: str
) -> subprocess.CompletedProcess[str]:
    """Run a script as CI does: by a shell that ends at the first error, with the example's variables."""
    own = {name: EXPRESSION.sub("main", str(value)) for name, value in given.items()}
    targets = {"fixed": checkout / "targets.yaml", "scripted-agent": EXAMPLES / "targets.yaml"}
    environment = {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("EVALHUB_", "DATABASE_"))
        },
        **own,
        "DJANGO_SETTINGS_MODULE": "evalhub.settings",
        "EVALHUB_DATA": str(checkout / ".evalhub-data"),
        "SUITE": str(EXAMPLES / "git-basics"),
        "TARGETS": str(targets[target]),
        "TARGET": target,
        **dict.fromkeys(("GITHUB_SHA", "CI_COMMIT_SHA"), "abc123"),
        "CI_COMMIT_REF_NAME": "main",
        "GITHUB_STEP_SUMMARY": str(checkout / "step-summary.md"),
    }
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("target", ["fixed", "scripted-agent"])
def test_githubs_commands_write_verdict_and_reports(checkout: Path, target: str) -> None:
    for script in commands_of([step.get("run", "") for step in steps_of(EVALS)]):
        done = execute(checkout, script, EVALS["env"], target)
        assert done.returncode == 0, done.stdout + done.stderr
    summary = (checkout / "step-summary.md").read_text()
    assert summary.startswith("Paid targets are skipped here")
    assert "`git-basics` v1 on `" + target in summary
    report = parse(checkout / "results" / "junit.xml")
    assert len(report.findall(".//testcase")) == 9
    assert len(report.findall(".//failure")) == (6 if target == "scripted-agent" else 9)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["evals", "evals-paid", "github-paid"])
def test_other_commands_write_a_summary_file(checkout: Path, name: str) -> None:
    if name == "github-paid":
        scripts, given = [step.get("run", "") for step in steps_of(PAID)], PAID["env"]
    else:
        scripts, given = GITLAB[name]["script"], GITLAB["variables"]
    for script in commands_of(scripts):
        done = execute(checkout, script, given, "fixed")
        assert done.returncode == 0, done.stdout + done.stderr
    summary = (checkout / "results" / "summary.md").read_text()
    assert summary.startswith("### Run 1: `git-basics` v1 on `fixed`")
    assert "cost $0.09" in summary


def test_forks_run_without_secrets() -> None:
    assert "secrets." not in json.dumps(EVALS["jobs"])
    assert "pull_request" in triggers_of(EVALS)
    assert EVALS["permissions"] == {"contents": "read"}
    first, *_ = GITLAB["evals-paid"]["rules"]
    assert "!= $CI_PROJECT_ID" in first["if"]
    assert first["when"] == "never"


def test_secrets_need_a_label_and_reach_one_step() -> None:
    (job,) = PAID["jobs"].values()
    assert triggers_of(PAID) == {"pull_request_target": {"types": ["labeled"]}}
    assert job["if"] == "github.event.label.name == 'run-evals'"
    assert [step["name"] for step in job["steps"] if "secrets." in json.dumps(step)] == ["Run the scenarios"]
    assert not any("cache/save" in step.get("uses", "") for step in job["steps"])


def test_no_script_holds_an_expression() -> None:
    scripts = [step.get("run", "") for workflow in (EVALS, PAID) for step in steps_of(workflow)]
    assert not any(EXPRESSION.search(script) for script in scripts)

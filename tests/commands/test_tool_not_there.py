"""A tool that isn't where the guidance says: its calls never start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.test import Client

from runs.models import Run
from tests.builders import make_member
from tests.commands.calling import call
from tests.static_files import plain_static_files  # noqa: F401  # a fixture
from tests.web.screen import parse

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]
SKILL = (
    "---\nname: tally\ndescription: Count things with tally. Use when asked to count.\n---\n"
    "Run `./tally add N`; `./tally total` prints the sum.\n"
)
EVENTS = (
    '{"type":"tool_call","id":"1","name":"Bash","arguments":{"command":"./tally add 3"}}\\n'
    '{"type":"tool_result","id":"1","exit_code":127,"output":"sh: 1: ./tally: not found"}\\n'
)
TARGETS = f"""
targets:
  - name: shell
    provider: cli
    command_template: |-
      sh -c {{PROMPT}} >out.txt 2>&1; printf '{EVENTS}' > {{EVENTS_FILE}}; echo done
"""


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """Return a skill whose case lays `tally` in a folder, where the skill doesn't call it."""
    folder = tmp_path / "my-skill"
    (folder / "evals/files").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "evals/gates.yaml").write_text("tool: tally\n")
    said = ["No call of tally failed."]
    case = {"id": 1, "prompt": "./tally add 3", "files": ["files/tally"], "assertions": said}
    (folder / "evals/evals.json").write_text(json.dumps({"skill_name": "tally", "evals": [case]}))
    (folder / "evals/files/tally").write_text('#!/bin/sh\necho "$@" >> tally.txt\n')
    (tmp_path / "targets.yaml").write_text(TARGETS)
    return folder


def run(skill: Path, *more: str):
    targets = ("--targets", str(skill.parent / "targets.yaml"), "--target", "shell")
    return call("run_scenarios", str(skill), *targets, "--no-judge", "--now", "--quiet", *more)


def test_one_trial_says_so_and_has_no_verdict(skill):
    ended = run(skill, "--fail-on-regression", "--json")
    (document,) = json.loads(ended.out)["runs"]
    assert (ended.code, document["run"]["verdict"], document["run"]["verdict_reason"]) == (
        4,
        None,
        "tool_not_started",
    )
    assert "tally was not found in 1 of 1 trial: no call of it started." in document["run"]["no_verdict"]
    (trial,) = document["trials"]
    assert trial["warnings"] == ["No call of tally started: `tally add 3` ended with exit code 127."]


def test_after_three_trials_the_queued_ones_are_cancelled(skill):
    ended = run(skill, "--trials", "8", "--concurrency", "1")
    ran = Run.objects.get()
    assert (ran.passed, ran.cancelled, ran.state) == (3, 5, "finished")
    assert ran.warnings[-1].endswith("5 trials did not run.")
    assert "tally was not found in 3 of 3 trials" in ran.not_started
    assert "has no verdict: tally was not found in 3 of 3 trials" in ended.out
    client = Client()
    client.force_login(make_member(ran.project))
    for address in (f"runs/{ran.pk}", f"suites/{ran.suite.slug}"):
        text = parse(client.get(f"/p/{ran.project.slug}/{address}/")).text
        assert "tally was not found in 3 of 3 trials: no call of it started." in text


@pytest.mark.slow
def test_a_lift_says_it_first(skill):
    ended = run(skill, "--lift")
    assert ended.code in (0, 4)
    first = next(line for line in ended.out.splitlines() if line.startswith("no skill"))
    assert "tally was not found in" in first


def test_the_check_names_a_path_that_nothing_has(skill):
    ended = call("check_scenarios", str(skill), "--json")
    found = [each for each in ended.document["problems"] if each["id"] == "format/tool-not-there"]
    assert {(each["file"], each["line"], each["what"]) for each in found} == {
        ("SKILL.md", 5, "SKILL.md calls `./tally`, which no case has in its workspace or in the skill; eval-1 has it at files/tally."),
        ("evals/evals.json", 1, "The prompt calls `./tally`, which the workspace doesn't have; eval-1 has it at files/tally."),
    }  # fmt: skip
    assert (len(found), ended.code) == (2, 0)


def test_what_lies_in_the_skill_or_is_another_program_needs_no_hint(skill):
    (skill / "tally").write_text("#!/bin/sh\n")
    case = {"id": 1, "prompt": "Run tally and ./other.", "assertions": ["It ran."]}
    (skill / "evals/evals.json").write_text(json.dumps({"skill_name": "tally", "evals": [case]}))
    assert "tool-not-there" not in call("check_scenarios", str(skill)).out

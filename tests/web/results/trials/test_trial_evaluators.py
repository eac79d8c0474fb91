"""Each evaluator shows its name, score, verdict, hits and misses: on the trial's page, over REST and in `show_run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from evalhub.teams.access import default_project
from evalhub.teams.models import ApiToken
from runs.models import Trial
from tests.builders import make_member
from tests.commands.calling import call
from tests.web.screen import parse

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

CASE = """\
evalcases:
  - id: a
    expected_outcome: finds it
    input_messages: [{role: user, content: find x}]
    execution:
      threshold: 0.5
      evaluators:
        - {name: traj, type: tool_trajectory, mode: any_order, minimums: {a: 1, b: 2, c: 1, d: 1}}
        - {name: tone, type: llm_judge}
        - name: both
          type: composite
          evaluators:
            - {name: order, type: tool_trajectory, mode: in_order, expected: [{tool: a}]}
            - {name: style, type: llm_judge}
"""
TARGETS = """\
targets:
  - name: agent
    provider: mock
    response: hello
    trace: [{type: tool_call, name: a}, {type: tool_call, name: b}]
    judge_target: judge
  - name: judge
    provider: mock
    response: '{"score": 0.7, "hits": ["first", "second", "third"], "misses": ["fourth"], "reasoning": "so so"}'
"""
MISSED = ["b called 1 time (minimum: 2)", "c called 0 times (minimum: 1)", "d called 0 times (minimum: 1)"]


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    (tmp_path / "one.yaml").write_text(CASE)
    (tmp_path / "targets.yaml").write_text(TARGETS)
    given = ("--targets", str(tmp_path / "targets.yaml"), "--target", "agent")
    call("run_scenarios", str(tmp_path / "one.yaml"), *given, "--now")
    return Trial.objects.select_related("run").get()


def scores(document: dict[str, Any]) -> dict[str, Any]:
    return {score["name"]: score for score in document["scores"] if score["layer"] == "evaluators"}


def test_rest_has_whole_lists(trial, client):
    _, secret = ApiToken.issue(
        default_project(), make_member(default_project(), "viewer"), name="t", role="viewer"
    )
    headers = {"Authorization": f"Bearer {secret}"}
    document = client.get(f"/api/v1/trials/{trial.pk}", headers=headers).json()
    found = scores(document)
    assert (found["traj"]["value"], found["traj"]["verdict"]) == (0.25, "fail")
    assert (found["traj"]["misses"], found["traj"]["hits"]) == (MISSED, ["a called 1 time (minimum: 1)"])
    assert found["tone"]["hits"] == ["first", "second", "third"]
    assert (found["tone"]["misses"], found["tone"]["reasoning"]) == (["fourth"], "so so")
    assert (found["both"]["verdict"], found["both/order"]["verdict"]) == ("pass", "pass")
    assert found["score"]["misses"][:3] == MISSED
    assert [judging["name"] for judging in document["judgings"]] == ["tone", "both/style"]


def test_show_run_prints_them(trial):
    out = call("show_run", str(trial.run_id)).out
    shown = [line.strip() for line in out.splitlines()]
    assert trial.outcome == "pass"
    start = shown.index("traj 0.25 fail")
    assert shown[start + 1 : start + 5] == [
        *(f"✗ {miss}" for miss in MISSED),
        "✓ a called 1 time (minimum: 1)",
    ]
    assert "tone 0.70 borderline" in shown
    assert {"✓ first", "✓ second", "✓ third", "✗ fourth", "so so"} <= set(shown)
    assert "both/order 1.00 pass" in shown


def test_the_trials_page_names_them(trial):
    client = Client()
    client.force_login(make_member(default_project(), "viewer"))
    page = parse(client.get(f"/p/default/trials/{trial.pk}/"))
    gates = page.region("Gates")
    shown = [" ".join(item.text.split()) for item in gates.all("ol.gates > li")]
    traj = next(text for text in shown if text.startswith("traj"))
    assert traj.startswith("traj 0.25 fail tool_trajectory")
    for text in (*MISSED, "a called 1 time (minimum: 1)"):
        assert text in traj
    assert any(text.startswith("tone 0.70 borderline llm_judge so so") for text in shown)
    assert any(text.startswith("both/order 1.00 pass") for text in shown)
    judge = page.region("Judge")
    assert [heading for heading in judge.headings if "0.70" in heading] == ["tone: 0.70", "both/style: 0.70"]


def test_a_failed_trial_prints_them_when_it_ends(tmp_path):
    (tmp_path / "one.yaml").write_text(CASE.replace("threshold: 0.5", "threshold: 1"))
    (tmp_path / "targets.yaml").write_text(TARGETS)
    given = ("--targets", str(tmp_path / "targets.yaml"), "--target", "agent")
    ran = call("run_scenarios", str(tmp_path / "one.yaml"), *given, "--now")
    assert "traj 0.25 fail" in ran.out
    assert "✗ d called 0 times (minimum: 1)" in ran.out

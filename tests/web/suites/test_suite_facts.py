"""The line of facts in the head of a suite's page."""

from __future__ import annotations

import pytest

from runs.models import Baseline
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from scenarios.models import Fixture, Rubric, ScenarioVersion
from tests.builders import make_run, make_suite, make_target
from tests.web.screen import parse

PATTERN = r"<i>taskmgr\s+(\S+)"
JUDGE = {"rubric": {"name": "capture", "criteria": [{"id": "a", "weight": 1.0}]}, "pass_threshold": 0.5}


def head(client):
    return parse(client.get("/p/tools/suites/basics/")).all("main header")[0]


def make_judged(project, **judge):
    criteria = {"tool": {"binary": "taskmgr", "command_pattern": PATTERN}, "judge": {**JUDGE, **judge}}
    version = make_suite(project, name="Basics", criteria=criteria, fixture="workspace")
    fixture = Fixture.objects.create(project=project, sha256="70b2d9e1" * 8, archive=b"")
    rubric = Rubric.objects.create(project=project, sha256="0badcafe" * 8, name="capture", content={})
    ScenarioVersion.objects.update(fixture=fixture, rubric=rubric)
    return version


def test_a_suite_shows_shared_facts_once(signed_in, project):
    make_judged(project)
    facts = head(signed_in()).facts
    assert facts["Fixture"] == "workspace 70b2d9e1"
    assert facts["Rubric"] == "capture 0badcafe"
    assert facts["Tool pattern"] == r"<i>taskmgr\s+(\S+)"
    assert "Tool" not in facts


def test_a_rubric_without_an_enabled_judge_is_not_shown(signed_in, project):
    make_judged(project, enabled=False)
    assert "Rubric" not in head(signed_in()).facts


def test_what_scenarios_do_not_have_is_left_out(signed_in, project):
    make_suite(project, name="Basics")
    assert not {"Fixture", "Baseline", "Rubric", "Tool pattern"} & set(head(signed_in()).facts)


OF_DECEMBER = """evalcases:
  - id: sums
    conversation_id: one
    expected_outcome: Says 7.
    input_messages: [{role: user, content: Add 3 and 4.}]
    execution: {evaluators: [{name: says-7, type: code_judge, script: "true"}]}
"""
RELEASED = """tests:
  - id: sums
    input: Add 3 and 4.
    criteria: Says 7.
    assertions: [{type: contains, value: "7"}]
"""


@pytest.mark.parametrize(("document", "score"), [(OF_DECEMBER, "1.00"), (RELEASED, "0.80")])
def test_an_agentv_suite_names_its_passing_score(signed_in, project, document, score):
    import_files(Bundle("Basics", {"basics.yaml": document.encode()}), project=project, by=None)
    assert head(signed_in()).facts["Passing score"] == score


def test_several_values_are_counted(signed_in, project):
    version = make_judged(project)
    other = version.scenario_versions.last()
    other.fixture = Fixture.objects.create(project=project, sha256="f" * 64, archive=b"")
    other.save()
    assert head(signed_in()).facts["Fixture"].endswith("and 1 more")


def test_a_suite_leads_to_its_baselines(signed_in, project):
    version = make_suite(project, name="Basics")
    for name in ("first", "second"):
        target = make_target(project, name)
        run = make_run(version, target=target)
        Baseline.objects.create(suite=version.suite, target=target, run=run)
    run = Baseline.objects.get(target__name="first").run_id
    baseline = head(signed_in()).fact("Baseline")
    assert baseline.text == f"run {run} and 1 more"
    assert baseline.link(f"run {run}").address.endswith(f"/runs/{run}/")
    assert baseline.link("1 more").address == "#baselines"

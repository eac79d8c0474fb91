"""`run_scenarios --until-decided`: one exit code and one document at the end."""

from __future__ import annotations

import pytest

from evalhub.teams.access import default_project
from runs.models import Run
from tests.commands.calling import call
from tests.runs.carrying import suite_of
from tests.runs.confirming import WANTED, answers

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def slug():
    project = default_project()
    version = suite_of(project, **dict.fromkeys(("add", "create", "export", "list"), WANTED))
    answers(project, "done")
    return version.suite.slug


def test_a_regression_ends_with_3_after_its_last_look(slug):
    assert call("run_scenarios", slug, "--now", "--trials", "6").code == 0
    answers(default_project(), "I can't.")
    ended = call("run_scenarios", slug, "--now", "--until-decided", "--fail-on-regression", "--json")
    assert ended.code == 3
    run = ended.document["runs"][0]["run"]
    assert (run["verdict"], [each["decision"] for each in run["looks"]]) == ("regressed", ["decided"])
    assert len(ended.document["runs"][0]["trials"]) == run["trials"] == 12


def test_the_most_trials_decide_whether_a_regression_can_be_shown(slug):
    given = ("run_scenarios", slug, "--now", "--fail-on-regression", "--only", "add")
    assert "can't show a regression" in call(*given, "--trials", "2").err
    assert "can't show a regression" not in call(*given, "--until-decided", "--max-trials", "8").err


def test_an_unchanged_tool_ends_with_0_before_the_limit(slug):
    call("run_scenarios", slug, "--now", "--trials", "8")
    ended = call("run_scenarios", slug, "--now", "--until-decided", "--max-trials", "8", "--json")
    assert ended.code == 0
    run = ended.document["runs"][0]["run"]
    assert [each["decision"] for each in run["looks"]] == ["go_on", "futile"]
    assert run["trials"] == 8


def test_a_limit_without_looks_is_refused(slug):
    ended = call("run_scenarios", slug, "--now", "--max-trials", "8")
    assert (ended.code, Run.objects.count()) == (2, 0)
    assert "Add --until-decided" in ended.err


def test_a_dry_run_says_the_expected_and_the_greatest_number_of_trials_and_cost(slug):
    answers(default_project(), "done", cost_usd=0.1)
    alone = call("run_scenarios", slug, "--dry-run", "--until-decided", "--max-trials", "12")
    assert "12 trials at the first look, about 12 if nothing has changed, at most 48." in alone.out
    assert "1 run without a baseline to compare with stops after the first look." in alone.out
    call("run_scenarios", slug, "--now", "--trials", "12")
    planned = call("run_scenarios", slug, "--dry-run", "--until-decided", "--max-trials", "12", "--json")
    looks = planned.document["looks"]
    assert (looks["first"], looks["expected"], looks["greatest"]) == (12, 36, 48)
    assert (looks["expected_usd"], looks["greatest_usd"]) == (pytest.approx(3.6), pytest.approx(4.8))

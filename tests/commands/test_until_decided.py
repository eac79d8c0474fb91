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


def test_an_unchanged_tool_ends_with_0_before_the_limit(slug):
    call("run_scenarios", slug, "--now", "--trials", "8")
    ended = call("run_scenarios", slug, "--now", "--until-decided", "--max-trials", "8", "--json")
    assert ended.code == 0
    run = ended.document["runs"][0]["run"]
    assert [each["decision"] for each in run["looks"]] == ["go_on", "futile"]
    assert run["trials"] == 16


def test_a_limit_without_looks_is_refused(slug):
    ended = call("run_scenarios", slug, "--now", "--max-trials", "8")
    assert (ended.code, Run.objects.count()) == (2, 0)
    assert "Add --until-decided" in ended.err

"""Earlier passes with the same inputs are reused, on request and for single trials only."""

from __future__ import annotations

import pytest
from django.test import Client

from evalhub.teams.models import Project
from runs.engine import run_here
from runs.errors import RequestError
from runs.launch.request import Request, request_runs
from runs.models import Run, Target, Trial
from runs.models.run import Trigger
from runs.models.run_options import RunOptions
from tests.builders import make_member
from tests.runs.carried import shell_project
from tests.runs.carrying import suite_of
from tests.static_files import plain_static_files  # noqa: F401  # a fixture
from tests.web.screen import parse

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def project() -> Project:
    return shell_project()


@pytest.fixture
def version(project):
    gates = {"gates": [{"type": "file_exists", "path": "out.txt"}]}
    return suite_of(
        project,
        good={"prompt": "echo once >> out.txt; date +%N", "criteria": gates},
        bad={"prompt": "date +%N", "criteria": gates},
    )


def ran(version, **options) -> Run:
    request = Request([version], targets=["shell"], options=RunOptions(**options))
    made = request_runs(version.suite.project, request, by=None, trigger=Trigger.CLI, wake=False)
    run_here.run_here(made)
    return Run.objects.get(launch=made)


def of(run: Run, key: str) -> Trial:
    return run.trial_set.get(scenario__key=key)


def test_a_pass_is_reused_and_a_failure_runs_again(version):
    first = ran(version)
    assert (first.passed, first.failed) == (1, 1)
    second = ran(version, use_cache=True)
    assert (second.state, second.passed, second.failed, second.open) == ("finished", 1, 1, 0)
    assert of(second, "good").detail["cached_from"] == of(first, "good").pk
    assert of(second, "good").answer == of(first, "good").answer
    assert of(second, "good").cost_usd is None
    assert "cached_from" not in of(second, "bad").detail
    assert of(second, "bad").answer != of(first, "bad").answer
    assert second.warnings[-1] == "1 result reused from earlier passes with the same inputs (cache)."
    third = ran(version, use_cache=True)
    assert of(third, "good").detail["cached_from"] == of(first, "good").pk


def test_without_the_option_everything_runs(version):
    first, second = ran(version), ran(version)
    assert of(second, "good").answer != of(first, "good").answer


@pytest.mark.slow
def test_other_inputs_are_another_result(project, version):
    ran(version)
    target = Target.objects.get(project=project)
    Target.objects.update(definition={**target.definition, "timeout_seconds": 77})
    assert "cached_from" not in of(ran(version, use_cache=True), "good").detail


def test_repeats_are_never_reused(version):
    with pytest.raises(RequestError, match="because they have to be independent"):
        ran(version, use_cache=True, trials=2)


def test_a_reused_trial_says_so_on_its_page(project, version):
    first, second = ran(version), ran(version, use_cache=True)
    client = Client()
    client.force_login(make_member(project, "viewer"))
    page = parse(client.get(f"/p/default/trials/{of(second, 'good').pk}/"))
    assert page.fact("Reused").text == f"the result of trial {of(first, 'good').pk}"


def test_a_scenario_can_refuse_the_cache(project):
    gates = {"gates": [{"type": "file_exists", "path": "out.txt"}]}
    version = suite_of(project, good={"prompt": "touch out.txt", "criteria": gates, "cost": {"cache": False}})
    ran(version)
    assert "cached_from" not in of(ran(version, use_cache=True), "good").detail

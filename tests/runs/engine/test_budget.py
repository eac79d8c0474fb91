"""Launches that stop once they cost their budget."""

from __future__ import annotations

import time
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from runs.engine import recording
from runs.engine.run_here import run_here
from runs.errors import RequestError
from runs.launch.request import Request, request_runs
from runs.models import Run, Trial
from runs.models.run import Trigger
from runs.models.run_options import RunOptions
from tests.builders import make_project, make_target
from tests.commands.calling import call
from tests.runs.carrying import NO_GATES, beside, claimed, passed, start, suite_of
from tests.runs.confirming import answers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def version():
    return suite_of(make_project(), create=NO_GATES, export=NO_GATES)


def ran(version, *targets, **options):
    request = Request([version], targets=targets, options=RunOptions(**options))
    launch = request_runs(version.suite.project, request, by=None, trigger=Trigger.CLI, wake=False)
    run_here(launch)
    return list(launch.runs.order_by("pk"))


def test_no_trial_starts_once_the_budget_is_spent(version):
    answers(version.suite.project, "done", cost_usd=0.25)
    (run,) = ran(version, trials=5, max_usd=0.5)
    assert (run.state, run.outcome, run.passed, run.cancelled, run.cost_usd) == (
        "finished",
        "pass",
        2,
        8,
        0.5,
    )
    assert run.warnings[-1] == "The budget of $0.50 was reached. 8 trials did not run."
    assert set(Trial.objects.filter(state="cancelled").values_list("error", flat=True)) == {
        "The budget of $0.50 was reached."
    }


def test_the_runs_of_a_launch_share_its_budget(version):
    answers(version.suite.project, "done", cost_usd=0.25)
    make_target(version.suite.project, "free")
    runs = ran(version, "local", "free", trials=20, max_usd=0.5)
    assert [run.state for run in runs] == ["finished", "finished"]
    assert runs[0].cost_usd == 0.5
    assert runs[1].cancelled > 0
    assert all("was reached" in run.warnings[-1] for run in runs)


def test_lanes_that_store_at_once_see_each_others_costs(version):
    answers(version.suite.project, "done", cost_usd=0.25)
    make_target(version.suite.project, "second")
    request = Request([version], targets=["local", "second"], options=RunOptions(trials=5, max_usd=0.5))
    launched = request_runs(version.suite.project, request, by=None, trigger=Trigger.CLI, wake=False)
    one, other = launched.runs.order_by("pk")
    start(one)
    start(other)
    claim, its_claim = claimed(one), claimed(other)
    following: list[object] = []

    def store() -> None:
        following.append(recording.record_and_claim(its_claim, passed(cost_usd=0.25)))

    with ExitStack() as meanwhile, transaction.atomic():
        recording.record_result(claim, passed(cost_usd=0.25))
        meanwhile.enter_context(beside(store))
        # Long enough to store a result, if nothing waited for this transaction.
        time.sleep(1)
    assert following == [(True, None)]


def test_costs_that_nobody_reports_spend_nothing(version):
    answers(version.suite.project, "done")
    (run,) = ran(version, trials=3, max_usd=0.01)
    assert (run.passed, run.warnings) == (6, [])


def test_the_command_warns_of_an_estimate_above_the_budget(version):
    answers(version.suite.project, "done", cost_usd=0.25)
    ran(version, trials=2)
    called = call("run_scenarios", version.suite.slug, "--project", "tools", "--max-usd", "0.3", "--now")
    assert (
        "The estimated cost of $0.50 is above the budget of $0.30: the last trials may not run." in called.err
    )
    assert Run.objects.latest("pk").cost_usd == 0.5


@pytest.mark.parametrize("amount", ["0", "-1", "nan"])
def test_a_budget_that_is_no_amount_is_refused(version, amount):
    answers(version.suite.project, "done")
    called = call("run_scenarios", version.suite.slug, "--project", "tools", f"--max-usd={amount}", "--now")
    assert (called.code, "--max-usd is" in called.err) == (2, True)


def test_no_trial_starts_once_the_projects_month_is_spent(version):
    project = version.suite.project
    answers(project, "done", cost_usd=0.25)
    type(project).objects.update(month_usd=0.75)
    project.refresh_from_db()
    (run,) = ran(version, trials=5)
    sentence = f"The project's budget of $0.75 for {timezone.now():%B %Y} is spent."
    assert (run.passed, run.cancelled) == (3, 7)
    assert run.warnings[-1] == f"{sentence} 7 trials did not run."
    with pytest.raises(RequestError, match="An admin can raise it in the project's settings"):
        ran(version)


def test_what_last_month_cost_does_not_count(version):
    project = version.suite.project
    answers(project, "done", cost_usd=0.25)
    ran(version, trials=2)
    Run.objects.update(created=timezone.now() - timedelta(days=32))
    type(project).objects.update(month_usd=0.6)
    project.refresh_from_db()
    assert ran(version)[0].passed == 2


def test_the_command_warns_of_an_estimate_above_the_month(version):
    answers(version.suite.project, "done", cost_usd=0.25)
    ran(version, trials=2)
    type(version.suite.project).objects.update(month_usd=1.2)
    called = call("run_scenarios", version.suite.slug, "--project", "tools", "--now", "--quiet")
    assert (
        "The estimated cost of $0.50 is above the $0.20 that are left of the project's budget" in called.err
    )

"""`manage.py retry_run`."""

from __future__ import annotations

import pytest

from runs.models import Run
from tests.builders import make_project, make_run, make_suite, make_target, make_trial
from tests.commands.calling import call

pytestmark = pytest.mark.one_database


@pytest.fixture
def run(transactional_db) -> Run:
    project = make_project()
    make_target(project)
    version = make_suite(project, ("create",), criteria={"gates": []})
    run = make_run(version)
    make_trial(run, outcome="error", error="No answer.")
    return run


def test_it_queues_the_errors(run):
    called = call("retry_run", str(run.pk))
    assert (called.code, called.out) == (0, f"run {run.pk}: 1 trial queued.\n")


def test_it_runs_them_in_this_process(run):
    called = call("retry_run", str(run.pk), "--now")
    run.refresh_from_db()
    assert (called.code, run.state, run.outcome) == (0, "finished", "pass")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["999"], "There is no run 999."), (["{run}", "--resume"], "has no cancelled trials to resume.")],
    ids=["unknown", "nothing cancelled"],
)
def test_it_says_what_cannot_run_again(run, words, sentence):
    called = call("retry_run", *(word.format(run=run.pk) for word in words))
    assert called.code == 2
    assert sentence in called.err

"""`search`."""

from __future__ import annotations

import pytest

from runs.results.search.trial_search import index_trials
from tests.builders import make_project, make_run, make_suite, make_trial
from tests.commands.calling import call

pytestmark = pytest.mark.django_db


def test_trials_are_found():
    run = make_run(make_suite(make_project("default"), ("create",), name="Basics"))
    trial = make_trial(run, "create", answer="Unknown flag --fmt.")
    assert call("search", "unknown").out == "No trial contains 'unknown'.\n"
    index_trials([trial.pk])
    lines = call("search", "--place", "answer", "unknown flag").out.splitlines()
    assert lines == [
        f"pass  create (trial {trial.pk}, run {run.pk}, Basics)",
        "      answer: Unknown flag --fmt.",
    ]
    assert call("search", "fmt", "--json").document["items"][0]["trial"] == trial.pk


def test_more_matches_are_counted():
    run = make_run(make_suite(make_project("default"), ("create",)))
    index_trials([make_trial(run, "create", answer="deploy").pk for _ in range(3)])
    assert call("search", "deploy", "--limit", "1").out.endswith("… 2 more; --limit prints them.\n")


def test_a_wrong_limit_is_refused():
    called = call("search", "x", "--limit", "0")
    assert (called.code, called.err) == (2, "--limit is 0. Give 1 to 300.\n")

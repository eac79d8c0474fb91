"""`search` and `index_search`."""

from __future__ import annotations

import pytest

from tests.builders import make_project, make_run, make_suite, make_trial
from tests.commands.calling import call

pytestmark = pytest.mark.django_db


def test_stored_trials_are_indexed_and_found():
    run = make_run(make_suite(make_project("default"), ("create",), name="Basics"))
    trial = make_trial(run, "create", answer="Unknown flag --fmt.")
    assert call("search", "unknown").out == "No trial contains 'unknown'.\n"
    assert call("index_search").out == "Indexed 1 trial.\n"
    lines = call("search", "--place", "answer", "unknown flag").out.splitlines()
    assert lines == [
        f"pass  create (trial {trial.pk}, run {run.pk}, Basics)",
        "      answer: Unknown flag --fmt.",
    ]
    assert call("search", "fmt", "--json").document["items"][0]["trial"] == trial.pk


def test_more_matches_are_counted():
    run = make_run(make_suite(make_project("default"), ("create",)))
    for _ in range(3):
        make_trial(run, "create", answer="deploy")
    call("index_search", "--project", "default")
    assert call("search", "deploy", "--limit", "1").out.endswith("… 2 more; --limit prints them.\n")


def test_a_wrong_limit_is_refused():
    called = call("search", "x", "--limit", "0")
    assert (called.code, called.err) == (2, "--limit is 0. Give 1 to 300.\n")

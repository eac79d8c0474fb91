"""A trial that ended in an error: its message, and how to start it again."""

from __future__ import annotations

import pytest

from tests.builders import make_run, make_suite, make_target, make_trial, score
from tests.web.results.trials.pages import HOSTILE, SHOWN, page
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


def test_it_explains_that_an_error_is_not_a_failure(signed_in, run):
    trial = make_trial(
        run, outcome="error", error="The provider answered 529.", error_kind="provider", starts=3
    )
    text = page(signed_in(), trial)
    assert "This trial hit an error, not a failure" in text
    assert "! The provider answered 529." in text.headings
    assert text.count("The provider answered 529.") == 1
    assert "Started 3 times" in text
    assert "Nothing to judge." in text


def test_a_long_error_is_shown_in_a_line_and_in_full(signed_in, run):
    detail = {"traceback": f"Traceback: {HOSTILE}", "notes": ["Tried twice."]}
    trial = make_trial(run, outcome="error", error=f"{HOSTILE} broke.\n" + "x" * 1000, detail=detail)
    text = page(signed_in(), trial)
    (heading,) = text.all("#what")
    assert SHOWN in heading
    assert len(heading) < 300
    assert "x" * 1000 in text
    assert f"Traceback: {SHOWN}" in text
    assert "Tried twice." in text
    assert text.all("script") == []


def test_a_long_traceback_is_marked_as_cut(signed_in, run):
    detail = {"traceback": "x" * 5000}
    text = page(signed_in(), make_trial(run, outcome="error", error="No answer.", detail=detail))
    assert "xxx … of 5,000 characters" in text


def test_a_gates_long_output_is_marked_as_cut(signed_in, run):
    long = {"stdout": "x" * 5000, "stderr": "y" * 6000}
    gate = score("gates", "command_succeeds", 0.0, False) | {"detail": long}
    gates = page(signed_in(), make_trial(run, outcome="fail", scores=[gate])).region("Gates")
    assert "xxx … of 5,000 characters" in gates and "yyy … of 6,000 characters" in gates


@pytest.mark.parametrize("passed", [True, False])
def test_gates_of_a_session_that_was_cut_off_are_shown(signed_in, run, passed):
    gate = score("gates", "file_exists", float(passed), passed, message="out.txt does not exist.")
    cut = "Codex of the target 'codex' was cut off by its model's service: HTTP 401."
    trial = make_trial(run, outcome="error", error=cut, error_kind="endpoint", scores=[gate])
    text = page(signed_in(), trial)
    assert "endpoint" in text
    assert f"{int(passed)} of 1 passed" in text.region("Gates")


def test_a_trial_that_failed_although_a_layer_broke_counts(signed_in, run):
    text = page(signed_in(), make_trial(run, outcome="fail", error="The judge did not answer."))
    assert "the trial failed because of another layer" in text
    assert text.all(".is-primary") == []


@pytest.mark.parametrize(("role", "may"), [("viewer", False), ("runner", True)])
def test_the_scenario_of_an_error_can_be_started_again(signed_in, project, role, may):
    run = make_run(make_suite(project, ("export & more",), name="Basics"), model="m-1")
    client = signed_in(role)
    text = page(client, make_trial(run, outcome="error", error="No answer."))
    assert ("Rerun this scenario…" in text.links) is may
    if may:
        form = parse(client.get(text.link("Rerun this scenario…").address))
        assert form.field("Suite").value == "basics"
        assert form.choices("Scenarios") == {"export & more": True}
        assert form.table("Targets").row("local").all("input")[0].get("checked") is not None
        assert form.choices("Models") == {"m-1": True}


def test_what_cannot_be_asked_for_again_is_not_offered(signed_in, project):
    foreign = make_target(project, "theirs")
    foreign.provider = "imported"
    foreign.save()
    version, odd = make_suite(project), make_suite(project, ("a,b",))
    client = signed_in()
    for run in (make_run(version, target=foreign), make_run(odd)):
        text = page(client, make_trial(run, outcome="error", error="No answer."))
        assert "Rerun this scenario" not in text

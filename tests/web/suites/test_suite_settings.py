"""A suite's settings on its page, and its release rule on the pages of runs."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent
from runs.results.run_list import by_rule
from scenarios.models import Suite
from tests.builders import close, make_run, make_trial
from tests.web.results.runs.pages import page
from tests.web.screen import parse

ADDRESS = "/p/tools/suites/basics/"


def test_settings_are_saved_on_the_suites_page(signed_in, version):
    client = signed_in("author")
    client.post(f"{ADDRESS}settings/", {"k": "3", "percent": "92.5"})
    suite = Suite.objects.get()
    assert (suite.release_k, suite.release_threshold, suite.retests) == (3, 0.925, False)
    assert parse(client.get(ADDRESS)).field("Release rule: trials in a row (k)").value == "3"
    shown = parse(signed_in("viewer").get(ADDRESS)).region("Settings")
    assert "Release rule: pass^3 of 92" in shown and "Retests are off." in shown
    client.post(f"{ADDRESS}settings/", {"k": "", "percent": "", "retests": "on"})
    suite.refresh_from_db()
    assert (suite.release_k, suite.release_threshold, suite.retests) == (None, None, True)
    assert [each.action for each in AuditEvent.objects.all()] == ["suite.change"] * 2


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"k": "0", "percent": "90"}, "Trials in a row: enter a number from 1 to 1,000."),
        ({"k": "3", "percent": "x"}, "Chance: enter a percentage from 0.1 to 100."),
        ({"k": "3"}, "A release rule has both numbers: trials in a row, and a chance."),
    ],
)
def test_a_wrong_rule_is_refused_with_a_sentence(signed_in, version, given, sentence):
    answer = signed_in("author").post(f"{ADDRESS}settings/", given, follow=True)
    assert sentence in parse(answer)
    assert Suite.objects.get().retests


@pytest.mark.parametrize(
    ("threshold", "outcomes", "state", "words"),
    [
        (0.5, {"create": "ppp", "export": "ppf"}, "met", "Met: 66.6 % over 2 scenarios."),
        (0.9, {"create": "ppp", "export": "ppf"}, "missed", "Missed: 66.6 % over 2 scenarios."),
        (0.5, {"create": "ppp", "export": "pe"}, "not_measured", "fewer than 2 trials passed or failed of export."),
        (0.5, {}, "not_measured", "of every scenario."),
    ],
)  # fmt: skip
def test_a_run_is_judged_by_the_mean_of_pass_k(threshold, outcomes, state, words):
    names = {"p": "pass", "f": "fail", "e": "error"}
    by_scenario = {key: [names[each] for each in own] for key, own in outcomes.items()}
    found = by_rule(Suite(release_k=2, release_threshold=threshold), by_scenario)
    assert found.state == state
    assert words in found.sentence


def test_a_runs_page_follows_the_rule(signed_in, version):
    Suite.objects.update(release_k=2, release_threshold=0.9)
    run = make_run(version)
    for outcome in ("pass", "fail"):
        make_trial(run, "create", outcome=outcome)
    shown = page(signed_in(), close(run)).region("Outcome")
    assert "release rule missed Release rule: pass^2 of 90% or more. Missed: 0 % over 1 scenario." in shown


def test_the_plan_says_that_trials_are_too_few_for_the_rule(signed_in, version):
    Suite.objects.update(release_k=3, release_threshold=0.9)
    make_run(version)
    plan = parse(signed_in().get("/p/tools/runs/new/?suite=basics&trials=2"))
    sentence = (
        "Basics: the release rule is pass^3, which 2 trials of each scenario can't measure. Run 3 or more."
    )
    assert sentence in plan
    assert "release rule" not in parse(signed_in().get("/p/tools/runs/new/?suite=basics&trials=3"))

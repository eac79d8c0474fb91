"""A suite's release rule: set on its page, and on the pages of runs."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent
from runs.results.release_rule import by_rule
from scenarios.models import Suite
from tests.builders import close, make_run, make_trial
from tests.web.results.runs.pages import page
from tests.web.screen import parse

ADDRESS = "/p/tools/suites/basics/"


def test_a_rule_is_set_and_removed_on_the_suites_page(signed_in, version):
    client = signed_in("author")
    client.post(f"{ADDRESS}release-rule/", {"k": "3", "percent": "92.5"})
    suite = Suite.objects.get()
    assert (suite.release_k, suite.release_threshold) == (3, 0.925)
    assert "pass^3) must be at least 92" in parse(client.get(ADDRESS)).region("Release rule")
    client.post(f"{ADDRESS}release-rule/", {"remove": "yes"})
    assert "No rule yet" in parse(client.get(ADDRESS)).region("Release rule")
    actions = list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))
    assert actions == ["release_rule.set", "release_rule.remove"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"k": "0", "percent": "90"}, "Trials: enter a number from 1 to 1,000."),
        ({"k": "3", "percent": "x"}, "Threshold: enter a percentage from 0.1 to 100."),
        ({}, "Trials: enter a number from 1 to 1,000."),
    ],
)
def test_a_wrong_rule_is_refused_with_a_sentence(signed_in, version, given, sentence):
    answer = signed_in("author").post(f"{ADDRESS}release-rule/", given, follow=True)
    assert sentence in parse(answer)
    assert Suite.objects.get().release_k is None


def test_a_viewer_sees_the_rule_without_a_form(signed_in, version):
    region = parse(signed_in("viewer").get(ADDRESS)).region("Release rule")
    assert "No rule yet" in region
    assert "Save rule" not in region


@pytest.mark.parametrize(
    ("threshold", "outcomes", "state", "words"),
    [
        (0.5, {"create": "ppp", "export": "ppf"}, "met", "Met: 66.6 % over 2 scenarios."),
        (0.9, {"create": "ppp", "export": "ppf"}, "missed", "Missed: 66.6 % over 2 scenarios."),
        (
            0.5,
            {"create": "ppp", "export": "pe"},
            "not_measured",
            "fewer than 2 trials passed or failed of export.",
        ),
        (0.5, {}, "not_measured", "of every scenario."),
    ],
)
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

"""The plan of a run: how much it is, what it costs and what it can show."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone

from runs.models import Baseline, Run, Target, TargetCheck
from tests.builders import make_guidance, make_suite, make_target
from tests.runs.past_runs import past_run
from tests.web.launch.form import ADDRESS, FETCHED, given, plan_of
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


def test_the_plan_counts_trials_and_stores_nothing(signed_in, version):
    text = signed_in().post(ADDRESS, given(), headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert "Start 6 trials" in text
    assert not Run.objects.exists()


def test_the_plan_works_without_a_script(signed_in, version):
    text = signed_in().post(ADDRESS, given(plan="yes")).content.decode()
    assert "<html" in text
    assert "Start 6 trials" in text


def test_the_plan_shows_cost_time_and_detectable_change(signed_in, large):
    text = plan_of(signed_in(), suite="large", concurrency="4")
    assert "Trials 18 6 scenarios" in text
    # 18 · (0.1 ± 4.303 · 0.01 · sqrt(1 + 1/3)): trials of a run do not differ.
    assert "Expected cost $1.80 $0.10 a trial Greatest cost $2.69 39 of 40 such runs cost less" in text
    assert "Time 2 min 4 at once" in text
    finding = r"A pass rate change of \d+ points or more is detected four times out of five; smaller changes"
    assert re.search(finding, text)
    assert (
        "Based on the pass rates of 6 scenarios in the last 3 runs; the verdict's own test with 80 % power"
        in text
    )
    assert "compared with a run of" in text


def detectable(text):
    found = re.search(r"A pass rate change of (\d+) points or more", text)
    assert found is not None, text
    return int(found[1])


def test_with_enough_runs_the_plan_is_for_the_line(signed_in, large):
    few = plan_of(signed_in(), suite="large")
    for _ in range(4):
        past_run(large)
    text = plan_of(signed_in(), suite="large")
    assert "compared with its line of 7 runs." in text
    assert detectable(text) < detectable(few)


def test_a_chosen_or_pinned_baseline_is_one_run(signed_in, large, project):
    *_, last = [past_run(large) for _ in range(4)]
    assert "compared with a run of" in plan_of(signed_in(), suite="large", baseline=str(last.pk))
    Baseline.objects.create(suite=last.suite, target=last.target, run=last)
    assert "compared with a run of" in plan_of(signed_in(), suite="large")


def test_the_plan_warns_of_a_cost_above_the_budget(signed_in, large):
    sentence = "The estimated cost of $1.80 is above the budget of $1.50: the last trials may not run."
    assert sentence in plan_of(signed_in(), suite="large", max_usd="1.5")
    assert sentence not in plan_of(signed_in(), suite="large", max_usd="2")
    assert "--max-usd 2 " in f"{plan_of(signed_in(), suite='large', max_usd='2')} "


def test_the_page_has_its_plan_at_once(signed_in, large):
    text = parse(signed_in().get(f"{ADDRESS}?suite=large&targets=local&trials=3")).text
    assert "Start 18 trials" in text
    assert "Expected cost $1.80" in text


def test_each_number_of_trials_has_a_cost_and_a_button(signed_in, large):
    plan = parse(signed_in().post(ADDRESS, given(suite="large"), headers=FETCHED))
    rows = plan.table("Detectable change by number of trials").rows
    buttons = [row.all("button")[0] for row in rows]
    assert [(each["name"], each["value"]) for each in buttons] == [
        ("trials", number) for number in ("1", "3", "5", "10", "20")
    ]
    assert [each["aria-pressed"] for each in buttons] == ["false", "true", "false", "false", "false"]
    costs = [row.cell("Cost").text for row in rows]
    assert costs == ["$0.60", "$1.80", "$3.00", "$6.00", "$12.00"]
    changes = [row.cell("Detectable change").text for row in rows]
    assert all(re.fullmatch(r"± \d+ pts|none", each) for each in changes)
    assert changes[-1].startswith("± ")


def test_the_number_that_was_pressed_is_the_fields(signed_in, large):
    page = parse(signed_in().post(ADDRESS, given(suite="large", trials=["3", "10"], plan="yes")))
    assert "Start 60 trials" in page.buttons
    assert page.field("Trials each").value == "10"
    headers = {**FETCHED, "HX-Trigger-Name": "trials"}
    swapped = parse(signed_in("runner").post(ADDRESS, given(trials=["3", "10"]), headers=headers))
    assert [each["value"] for each in swapped.all("input[hx-swap-oob=true]")] == ["10"]


def test_a_number_that_is_typed_is_left_alone(signed_in, large):
    page = parse(signed_in().post(ADDRESS, given(suite="large"), headers=FETCHED))
    assert page.all("input[hx-swap-oob]") == []


def test_a_plan_without_history_explains_what_is_missing(signed_in, version):
    text = plan_of(signed_in())
    assert "Expected cost – not measured Greatest cost – no cost known" in text
    assert "No runs on this target yet, so no estimate." in text
    assert "$" not in text


def test_an_unreported_cost_is_not_applicable(signed_in, version):
    past_run(version, cost_usd=None)
    text = plan_of(signed_in())
    assert "Expected cost not measured no cost reported" in text
    assert "$" not in text


def test_partial_estimates_show_their_number_of_trials(signed_in, large, project):
    make_target(project, "new")
    text = plan_of(signed_in(), suite="large", targets=["local", "new"])
    assert "Start 36 trials" in text
    assert "Expected cost at least $1.80 for 18 trials Greatest cost $2.69" in text
    assert "1 at once" not in text
    assert "new: no runs on this target yet, so no estimate." in text


def test_the_plan_is_shown_as_a_command(signed_in, version):
    text = plan_of(signed_in(), concurrency="2")
    assert "manage.py run_scenarios basics --project tools --target local --trials 3 --concurrency 2" in text


@pytest.mark.parametrize("headers", [{}, FETCHED], ids=["page", "plan"])
def test_it_makes_as_many_queries_for_many_targets_and_runs(
    signed_in, large, project, django_assert_max_num_queries, headers
):
    names = ["local"]
    for number in range(5):
        target = make_target(project, f"t{number}")
        names.append(target.name)
        past_run(large, target=target)
        make_suite(project, name=f"More {number}")
        TargetCheck.objects.create(target=target, at=timezone.now(), worker="eval-2", available=True)
        make_guidance(large.suite)
    client = signed_in()
    newest = str(Run.objects.latest("pk").pk)
    data = given(suite="large", targets=names, models="a, b", plan="yes", baseline=newest)
    with django_assert_max_num_queries(13):
        assert "Start 216 trials" in parse(client.post(ADDRESS, data, headers=headers))
    if not headers:
        with django_assert_max_num_queries(13):
            client.get(f"{ADDRESS}?suite=large&pick=failed")


def test_the_plan_until_a_verdict_says_what_to_expect_and_the_most(signed_in, large):
    text = plan_of(signed_in(), suite="large", until_decided="true", trials="1", max_trials="12")
    found = re.search(
        r"Until a verdict: 18 trials at the first look, about (\d+) if nothing has changed, at most 72\."
        r" It costs about \$(\S+), at most \$7\.20\.",
        text,
    )
    assert found
    assert 18 <= int(found[1]) <= 72
    assert float(found[2]) == pytest.approx(int(found[1]) / 10, abs=0.06)
    assert "--until-decided" in text


def test_a_limit_below_the_first_look_is_refused(signed_in, large):
    text = plan_of(signed_in(), suite="large", until_decided="true", trials="9", max_trials="4")
    assert "The first look takes 9 trials of each scenario, and the most are 4." in text


def test_the_budget_is_the_greatest_cost_if_it_is_less(signed_in, large):
    assert "Greatest cost $2.00 the budget" in plan_of(signed_in(), suite="large", max_usd="2")
    assert "Greatest cost $2.69" in plan_of(signed_in(), suite="large", max_usd="20")


def test_until_a_verdict_the_most_trials_say_what_is_found_and_what_it_costs(signed_in, large):
    once = detectable(plan_of(signed_in(), suite="large", trials="1"))
    text = plan_of(signed_in(), suite="large", until_decided="true", trials="1", max_trials="12")
    found = re.search(
        r"A pass rate change of (\d+) points or more is detected about four times out of five", text
    )
    assert found
    assert int(found[1]) < once
    assert "Greatest cost $7.20 at most 72 trials" in text


def test_a_plan_says_how_many_trials_may_run_again(signed_in, large):
    assert "run again" not in plan_of(signed_in(), suite="large")
    Target.objects.update(provider="cli")
    text = plan_of(signed_in(), suite="large")
    assert (
        "at most 36 more trials, $3.60, none if nothing broke. A scenario that breaks is named at once in"
        in text
    )
    assert "with 36 trials that run again" in text
    assert "The budget" not in text
    short = plan_of(signed_in(), suite="large", max_usd="5")
    assert "of cases. The budget of $5.00 may stop them." in short
    more = plan_of(signed_in(), suite="large", trials="9")
    assert "at most 54 more trials" in more
    off = given(suite="large")
    del off["retest"]
    assert "more trials" not in parse(signed_in().post(ADDRESS, off, headers=FETCHED)).text


def test_a_first_run_has_nothing_to_run_again(signed_in, version):
    Target.objects.update(provider="cli")
    assert "run again" not in plan_of(signed_in())

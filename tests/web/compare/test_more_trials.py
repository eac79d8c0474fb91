"""Further trials of two compared runs: planned, queued, and pooled within each scenario."""

from __future__ import annotations

import pytest

from runs.engine import run_here
from runs.models import Launch, Run, Target
from tests.builders import make_guidance, make_suite, make_target
from tests.runs.carrying import NO_GATES, launch, start
from tests.runs.looking import carry, decisions, failing, ran
from tests.runs.past_runs import past_run
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

COMPARE = "/p/tools/compare/"
ADDRESS = f"{COMPARE}more/"
KEYS = ("a", "b", "c", "d", "e", "f")


@pytest.fixture
def version(project):
    make_target(project)
    return make_suite(project, KEYS, name="Large")


def numbers(runs):
    return ",".join(str(run.pk) for run in runs)


@pytest.fixture
def runs(version):
    """Return two runs of six scenarios, three trials each; two scenarios are worse in the second."""
    base = past_run(version, {key: ["pass"] * 3 for key in KEYS})
    return base, past_run(version, {key: ["fail" if key in "ab" else "pass"] * 3 for key in KEYS})


def given(runs, **changes):
    return {"runs": numbers(runs), "scenario": ["", "a", "b"], "trials": "5", **changes}


def started(client, runs, **changes):
    return client.post(ADDRESS, given(runs, start="1", planned="20", **changes))


def test_the_scenarios_that_changed_are_proposed_with_the_plan(signed_in, runs):
    client = signed_in("runner")
    link = parse(client.get(f"{COMPARE}?runs={numbers(runs)}")).link("Run more trials…")
    text = parse(client.get(link.address))
    ticked = [each["value"] for each in text.all("input[type=checkbox][checked]")]
    assert ticked == ["a", "b"]
    plan = text.region("Plan")
    assert "Trials 20 2 runs × 2 × 5" in plan
    assert "Estimated cost $2.00" in plan
    assert plan.button("Start 20 trials")


def test_the_plan_says_what_the_trials_could_show(signed_in, runs):
    text = parse(signed_in("runner").get(f"{ADDRESS}?runs={numbers(runs)}")).region("Plan").text
    words = text.partition("can find a change of the pass rate of ")[2].split()
    assert 0 < float(words[5]) < float(words[0]) < 100


def test_the_plan_follows_the_form(signed_in, runs):
    client = signed_in("runner")
    headers = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "plan"}
    part = client.post(ADDRESS, given(runs, trials="2", scenario=["", "c"]), **headers).content.decode()
    assert "<html" not in part
    assert parse(part).button("Start 4 trials")
    assert Launch.objects.filter(trigger="confirm").count() == 0


def test_starting_queues_trials_of_both_runs_with_their_own_configuration(signed_in, version):
    other = make_target(version.suite.project, "other")
    guidance = make_guidance(version.suite)
    options = {"threshold": 0.7, "baseline": "9"}
    base = past_run(version, {key: ["pass"] for key in KEYS}, model="small", options=options)
    new = past_run(version, {key: ["fail"] for key in KEYS}, target=other, guidance=guidance, branch="fix")
    response = started(signed_in("runner"), (base, new))
    assert response.url == f"{COMPARE}?runs={base.pk},{new.pk}"
    queued = Launch.objects.get(trigger="confirm")
    one, two = queued.runs.order_by("pk")
    assert [(run.more_of_id, run.trials, run.is_experiment) for run in (one, two)] == [
        (base.pk, 10, True), (new.pk, 10, True),
    ]  # fmt: skip
    assert (one.target, one.model, one.guidance) == (base.target, "small", None)
    assert (two.target, two.guidance, two.branch) == (other, guidance, "fix")
    assert (one.options["threshold"], one.options["baseline"], one.options["trials"]) == (0.7, "", 5)
    assert set(two.trial_set.values_list("scenario__key", flat=True)) == {"a", "b"}


def test_a_plan_that_changed_meanwhile_starts_nothing(signed_in, runs):
    response = signed_in("runner").post(ADDRESS, given(runs, start="1", planned="8"))
    assert response.status_code == 409
    assert "Nothing was started because the plan has changed." in parse(response)
    assert not Launch.objects.filter(trigger="confirm").exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"trials": "0"}, "Enter a whole number of trials from 1 to 100."),
        ({"trials": "101"}, "Enter a whole number of trials from 1 to 100."),
        ({"trials": "x"}, "Enter a whole number of trials from 1 to 100."),
        ({"scenario": [""]}, "Select at least one scenario that both runs have."),
        ({"scenario": ["nowhere"]}, "Select at least one scenario that both runs have."),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(signed_in, runs, changes, sentence):
    response = started(signed_in("runner"), runs, **changes)
    assert response.status_code == 422
    assert sentence in parse(response)


def test_a_target_that_cannot_run_is_named(signed_in, runs):
    Target.objects.update(provider="imported", accepted=False)
    response = started(signed_in("runner"), runs)
    assert response.status_code == 422
    assert f"Run {runs[0].pk} can't get more trials. The target 'local' exists only in imported" in parse(
        response
    )


@pytest.mark.parametrize("asked", ["", "1", "x,y", "999998,999999"])
def test_without_two_runs_there_is_no_plan(signed_in, project, asked):
    assert signed_in("runner").get(f"{ADDRESS}?runs={asked}").status_code == 404


def test_different_tool_versions_are_warned_of(signed_in, version):
    runs = [past_run(version, fingerprint={"tool_version": each}) for each in ("1.0", "2.0")]
    text = parse(signed_in("runner").get(f"{ADDRESS}?runs={numbers(runs)}&scenario=a"))
    assert "The runs used different tool versions (1.0 and 2.0)." in text


def fresh(of, outcomes, **changes):
    """Return a finished run with further trials of a run."""
    return past_run(of.suite_version, outcomes, more_of=of, is_experiment=True, trigger="confirm", **changes)


def test_further_trials_are_pooled_within_their_scenarios(signed_in, runs):
    base, new = runs
    made = [fresh(run, {"a": ["pass"] * 5, "b": ["fail"] * 5}) for run in runs]
    client = signed_in("viewer")
    text = parse(client.get(f"{COMPARE}?runs={numbers(runs)}"))
    notice = text.region("More trials")
    assert "More trials count here" in notice
    for run, of in zip(made, runs, strict=True):
        assert f"Run {run.pk} for run {of.pk}: 10 trials" in notice
    row = text.table("Measures").row("Pass rate")
    assert (row.cell("n").text, row.cell("Trials").text) == ("6", "28 / 28")
    assert text.table("Scenarios").row("a").cell("Trials").text == "8 / 8"
    # Means of scenarios: a 8/8 and 5/8, b 3/8 and 0/8.
    assert (row.cell("Base").text, row.cell("New").text) == ("90 %", "77 %")
    alone = parse(client.get(f"{COMPARE}{notice.link('Compare without them').address}"))
    assert alone.table("Measures").row("Pass rate").cell("Trials").text == "18 / 18"
    assert alone.region("More trials").link("Count them").address == f"?runs={base.pk},{new.pk}"


def test_further_trials_of_another_configuration_do_not_count(signed_in, runs):
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(fingerprint={"tool_version": "1.0"})
    fresh(runs[1], {"a": ["pass"]}, fingerprint={"tool_version": "2.0", "evalhub": "9"})
    text = parse(signed_in().get(f"{COMPARE}?runs={numbers(runs)}"))
    assert "More trials don't count here." in text.region("More trials")
    assert "not pooled: Tool changed" in text.region("More trials")
    assert text.table("Measures").row("Pass rate").cell("Trials").text == "18 / 18"


@pytest.mark.parametrize(
    ("changes", "note"),
    [({"state": "running", "open": 1}, "1 of 2 trials done"), ({"error": "No tool."}, "could not start")],
)
def test_unfinished_further_trials_are_listed(signed_in, runs, changes, note):
    made = fresh(runs[0], {"a": ["pass", "pass"]})
    Run.objects.filter(pk=made.pk).update(**changes)
    assert note in parse(signed_in().get(f"{COMPARE}?runs={numbers(runs)}")).region("More trials")


def test_the_page_follows_the_trials_until_the_last(signed_in, runs):
    made = fresh(runs[0], {"a": ["pass"]})
    Run.objects.filter(pk=made.pk).update(state="running", open=1)
    client, address = signed_in("viewer"), f"{COMPARE}?runs={numbers(runs)}"
    (notice,) = parse(client.get(address)).all("#fresh")
    assert (notice["hx-get"], notice["hx-trigger"]) == (f"?runs={numbers(runs)}", "every 3s")
    headers = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "fresh"}
    waiting = client.get(address, **headers)
    assert "<html" not in waiting.content.decode()
    assert "HX-Refresh" not in waiting.headers
    Run.objects.filter(pk=made.pk).update(state="finished", open=0)
    assert client.get(address, **headers)["HX-Refresh"] == "true"


def test_a_compared_run_does_not_count_for_another_one(signed_in, runs):
    made = fresh(runs[0], {"a": ["pass"] * 5})
    row = parse(signed_in().get(f"{COMPARE}?runs={made.pk},{runs[0].pk}")).table("Measures").row("Pass rate")
    assert row.cell("Trials").text == "5 / 3"


CHECKED = {"gates": [{"type": "command_succeeds", "command": "true"}]}


@pytest.mark.django_db(transaction=True)
def test_started_trials_run_and_are_compared(signed_in, project):
    make_target(project)
    version = make_suite(project, KEYS, name="Small", criteria=CHECKED)
    runs = []
    for _ in range(2):
        made = launch(version, trials=2)
        run_here.run_here(made)
        runs.append(made.runs.get())
    client = signed_in("runner")
    client.post(ADDRESS, given(runs, start="1", planned="20"))
    run_here.run_here(Launch.objects.get(trigger="confirm"))
    row = parse(client.get(f"{COMPARE}?runs={numbers(runs)}")).table("Measures").row("Pass rate")
    assert (row.cell("n").text, row.cell("Trials").text) == ("6", "22 / 22")
    assert not project.alerts.exists()


def test_each_look_at_further_trials_lowers_the_levels(signed_in, runs):
    client, address = signed_in("viewer"), f"{COMPARE}?runs={numbers(runs)}"
    assert "has to be below" not in parse(client.get(address)).text
    levels = []
    for _ in range(2):
        at_once = Launch.objects.create(project=runs[0].project, trigger="confirm")
        for run in runs:
            fresh(run, {key: ["pass"] * 3 for key in KEYS}, launch=at_once)
        text = parse(client.get(address)).region("More trials").text
        levels.append(float(text.partition("the pass rate's p has to be below ")[2].split(",")[0]))
    # Twice and three times the information of the first look, which spent its whole level.
    assert levels == [0.009, 0.004]


def test_a_drop_that_one_comparison_would_find_is_no_verdict_at_a_later_look(signed_in, version):
    outcomes = {key: ["pass"] * 6 for key in KEYS}
    worse = {**outcomes, "a": ["fail"] * 2 + ["pass"] * 4, "b": ["fail"] * 2 + ["pass"] * 4}
    client = signed_in("viewer")
    once = past_run(version, outcomes), past_run(version, {**worse, "c": ["fail"] + ["pass"] * 5})
    assert "regressed" in parse(client.get(f"{COMPARE}?runs={numbers(once)}")).table("Measures").row(
        "Pass rate"
    )
    halves = [past_run(version, {key: each[:3] for key, each in own.items()}) for own in (outcomes, worse)]
    at_once = Launch.objects.create(project=halves[0].project, trigger="confirm")
    for run, own in zip(halves, (outcomes, {**worse, "c": ["pass"] * 5 + ["fail"]}), strict=True):
        fresh(run, {key: each[3:] for key, each in own.items()}, launch=at_once)
    row = parse(client.get(f"{COMPARE}?runs={numbers(halves)}")).table("Measures").row("Pass rate")
    assert "regressed" not in row


@pytest.mark.django_db(transaction=True)
def test_further_trials_until_a_verdict_take_turns_and_stop(signed_in, project):
    make_target(project)
    version = make_suite(project, KEYS, name="Small", **NO_GATES)
    base, new = (ran(version, failing(*broken), trials=3) for broken in ((), ("a",)))
    client = signed_in("runner")
    body = {"runs": f"{base.pk},{new.pk}", "scenario": ["", "a", "b"], "trials": "12", "until_decided": "yes"}
    plan = parse(client.post(ADDRESS, body)).region("Plan")
    assert "2 runs × 2 × 3, about three quarters of 48" in plan.text
    assert "no cost reported" in plan
    client.post(ADDRESS, {**body, "start": "1", "planned": "12"})
    old_side, new_side = Launch.objects.get(trigger="confirm").runs.order_by("pk")
    start(old_side)
    start(new_side)
    carry(
        [old_side, new_side], lambda run, key: failing(*(("a",) if run.pk == new_side.pk else ()))(run, key)
    )
    for run in (old_side, new_side):
        run.refresh_from_db()
    assert (old_side.state, new_side.state) == ("finished", "finished")
    assert decisions(new_side)[-1] == "decided"
    assert old_side.trials == new_side.trials < 24
    text = parse(client.get(f"{COMPARE}?runs={base.pk},{new.pk}"))
    assert "Regressed" in text


def test_the_plan_until_a_verdict_says_the_most_trials_and_cost(signed_in, runs):
    plan = parse(signed_in("runner").post(ADDRESS, given(runs, trials="20", until_decided="yes"))).region(
        "Plan"
    )
    assert "Trials 20 2 runs × 2 × 5, about three quarters of 80" in plan.text
    assert "Estimated cost $2.00 at most $8.00" in plan.text

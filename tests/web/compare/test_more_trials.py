"""Further trials of two compared runs: planned, queued, and pooled within each scenario."""

from __future__ import annotations

import pytest

from runs.compare.looks import extensions_of
from runs.engine import lanes, run_here
from runs.engine.preparation import prepare_run
from runs.engine.retrying import extend_runs
from runs.models import Launch, Run, Target
from tests.builders import make_suite, make_target
from tests.runs.carrying import NO_GATES, launch, passed, start
from tests.runs.looking import carry, failing, ran
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
    assert Launch.objects.filter(preset="more").count() == 0


def test_starting_queues_a_round_of_both_runs(signed_in, runs):
    base, new = runs
    response = started(signed_in("runner"), runs)
    assert response.url == f"{COMPARE}?runs={base.pk},{new.pk}"
    queued = Launch.objects.get(preset="more")
    assert (queued.about, queued.request["base"], queued.runs.count()) == (new, base.pk, 0)
    for run in runs:
        run.refresh_from_db()
        assert (run.state, run.trials, run.open, run.baseline_id) == ("queued", 18, 10, run.baseline_id)
        added = run.trial_set.filter(round=1)
        assert sorted(added.values_list("scenario__key", "index")) == [
            (key, index) for key in "ab" for index in range(3, 8)
        ]


def test_a_plan_that_changed_meanwhile_starts_nothing(signed_in, runs):
    response = signed_in("runner").post(ADDRESS, given(runs, start="1", planned="8"))
    assert response.status_code == 409
    assert "Nothing was started because the plan has changed." in parse(response)
    assert not Launch.objects.filter(preset="more").exists()


def test_a_request_that_makes_no_sense_is_refused(signed_in, runs):
    client = signed_in("runner")
    for name, values, sentence in (
        ("trials", ("0", "101", "x"), "Enter a whole number of trials from 1 to 100."),
        ("scenario", ([""], ["nowhere"]), "Select at least one scenario that both runs have."),
    ):
        for value in values:
            response = started(client, runs, **{name: value})
            assert response.status_code == 422, value
            assert sentence in parse(response), value


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


def extended(runs, result, keys=("a", "b"), trials=5, **plan):
    """Return the launch of further trials of two runs, which end as `result` says of a run and a key."""
    launch = extend_runs(runs, keys, trials, by=None, **plan)
    for run in runs:
        start(run)
    carry(runs, result)
    for run in runs:
        run.refresh_from_db()
    return Launch.objects.get(pk=launch.pk)


def test_further_trials_are_pooled_within_their_scenarios(signed_in, runs):
    base, new = runs
    pinned = [(run.pass_rate, run.passed, run.failed, run.verdict) for run in runs]
    extended(runs, lambda _, key: passed(outcome="fail" if key == "b" else "pass"))
    # Rates, lines and verdicts are of the first trials.
    assert [(run.pass_rate, run.passed, run.failed, run.verdict) for run in runs] == pinned
    client = signed_in("viewer")
    text = parse(client.get(f"{COMPARE}?runs={numbers(runs)}"))
    notice = text.region("More trials")
    assert "More trials count here" in notice
    assert "56 trials in all" in notice
    row = text.table("Measures").row("Pass rate")
    assert (row.cell("n").text, row.cell("Trials").text) == ("6", "28 / 28")
    assert text.table("Scenarios").row("a").cell("Trials").text == "8 / 8"
    # Means of scenarios: a 8/8 and 5/8, b 3/8 and 0/8.
    assert (row.cell("Base").text, row.cell("New").text) == ("90 %", "77 %")
    alone = parse(client.get(f"{COMPARE}{notice.link('Compare without them').address}"))
    assert alone.table("Measures").row("Pass rate").cell("Trials").text == "18 / 18"
    assert alone.region("More trials").link("Count them").address == f"?runs={base.pk},{new.pk}"


def test_further_trials_count_in_no_other_comparison(signed_in, runs, version):
    other = past_run(version, {key: ["pass"] * 3 for key in KEYS})
    extended(runs, lambda *_: passed())
    client = signed_in("viewer")
    for pair in ((runs[0], other), (runs[1], other)):
        text = parse(client.get(f"{COMPARE}?runs={numbers(pair)}"))
        assert text.table("Measures").row("Pass rate").cell("Trials").text == "18 / 18"


@pytest.mark.django_db(transaction=True)
def test_further_trials_of_another_configuration_are_refused(signed_in, project):
    make_target(project)
    version = make_suite(project, KEYS, name="Small", criteria=CHECKED)
    runs = []
    for _ in range(2):
        made = launch(version)
        run_here.run_here(made)
        runs.append(made.runs.get())
    Run.objects.filter(pk=runs[1].pk).update(fingerprint={**runs[1].fingerprint, "tool_version": "0.9"})
    extend_runs(runs, ["a"], 2, by=None)
    for run in runs:
        assert prepare_run(run.pk) is (run == runs[0])
    carry(runs, lambda *_: passed())
    text = parse(signed_in().get(f"{COMPARE}?runs={numbers(runs)}"))
    assert "More trials don't count here." in text.region("More trials")
    assert "tool version changed since the run's other trials" in text.region("More trials")
    assert text.table("Measures").row("Pass rate").cell("Trials").text == "6 / 6"
    assert [Run.objects.get(pk=run.pk).outcome for run in runs] == ["pass", "pass"]


def test_an_open_run_gets_no_further_trials(signed_in, runs):
    Run.objects.filter(pk=runs[0].pk).update(state="running", open=1)
    response = started(signed_in("runner"), runs)
    assert response.status_code == 422
    assert f"Run {runs[0].pk} is in progress." in parse(response)
    assert not runs[1].trial_set.filter(round=1).exists()


def test_the_page_follows_the_trials_until_the_last(signed_in, runs):
    extend_runs(runs, ["a"], 1, by=None)
    client, address = signed_in("viewer"), f"{COMPARE}?runs={numbers(runs)}"
    (notice,) = parse(client.get(address)).all("#fresh")
    assert (notice["hx-get"], notice["hx-trigger"]) == (f"?runs={numbers(runs)}", "every 3s")
    headers = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "fresh"}
    waiting = client.get(address, **headers)
    assert "<html" not in waiting.content.decode()
    assert "HX-Refresh" not in waiting.headers
    for run in runs:
        start(run)
    carry(runs, lambda *_: passed())
    assert client.get(address, **headers)["HX-Refresh"] == "true"


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
    for run in runs:
        assert prepare_run(run.pk)
        lanes.run_lane(run.pk)
    row = parse(client.get(f"{COMPARE}?runs={numbers(runs)}")).table("Measures").row("Pass rate")
    assert (row.cell("n").text, row.cell("Trials").text) == ("6", "22 / 22")
    assert not project.alerts.exists()


def test_each_look_at_further_trials_lowers_the_levels(signed_in, runs):
    client, address = signed_in("viewer"), f"{COMPARE}?runs={numbers(runs)}"
    assert "has to be below" not in parse(client.get(address)).text
    levels = []
    for _ in range(2):
        extended(runs, lambda *_: passed(), keys=KEYS, trials=3)
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
    ends = iter(["pass", "pass", "fail"])
    extended(
        halves,
        lambda run, key: passed(outcome=next(ends) if (run, key) == (halves[1], "c") else "pass"),
        keys=KEYS,
        trials=3,
    )
    row = parse(client.get(f"{COMPARE}?runs={numbers(halves)}")).table("Measures").row("Pass rate")
    assert row.cell("Trials").text == "36 / 36"
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
    for run in (base, new):
        start(run)
    carry([base, new], lambda run, key: failing(*(("a",) if run == new else ()))(run, key))
    for run in (base, new):
        run.refresh_from_db()
        assert (run.state, run.trials, run.looks) == ("finished", 18, [])
    (extension,) = extensions_of([base, new])
    assert extension.looks[-1].decision == "decided"
    added = [run.trial_set.filter(round__gt=0).count() for run in (base, new)]
    assert added[0] == added[1] < 24
    text = parse(client.get(f"{COMPARE}?runs={base.pk},{new.pk}"))
    assert "Regressed" in text


def test_the_plan_until_a_verdict_says_the_most_trials_and_cost(signed_in, runs):
    plan = parse(signed_in("runner").post(ADDRESS, given(runs, trials="20", until_decided="yes"))).region(
        "Plan"
    )
    assert "Trials 20 2 runs × 2 × 5, about three quarters of 80" in plan.text
    assert "Estimated cost $2.00 at most $8.00" in plan.text

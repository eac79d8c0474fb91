"""Asking for runs."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone

from runs.models import Run, TargetCheck, Trial
from tests.builders import make_guidance, make_project, make_suite, make_target
from tests.runs.past_runs import past_run

ADDRESS = "/p/tools/runs/new/"


@pytest.fixture
def version(project):
    make_target(project)
    return make_suite(project, ("create", "export"), name="Basics", tags=["smoke"])


def given(**changes):
    return {"suite": "basics", "targets": ["local"], "trials": "3", "judge": "on", **changes}


def test_starting_makes_the_trials(signed_in, version):
    response = signed_in("runner").post(ADDRESS, given(start="yes", run_tags="nightly, release"))
    run = Run.objects.get()
    assert response.url == f"/p/tools/runs/{run.pk}/"
    assert (run.trials, run.tags, run.trigger, run.state) == (6, ["nightly", "release"], "web", "queued")


def test_the_plan_stores_nothing_and_says_how_much_it_is(signed_in, version):
    text = signed_in().post(ADDRESS, given(), headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert "Start 6 trials" in text
    assert not Run.objects.exists()


def test_the_plan_works_without_a_script(signed_in, version):
    text = signed_in().post(ADDRESS, given(plan="yes")).content.decode()
    assert "<html" in text
    assert "Start 6 trials" in text


def test_several_models_make_several_runs(signed_in, version):
    signed_in().post(ADDRESS, given(start="yes", models="a, b"))
    assert sorted(Run.objects.values_list("model", flat=True)) == ["a", "b"]


def test_the_judge_can_be_left_out(signed_in, version):
    data = given(start="yes")
    del data["judge"]
    signed_in().post(ADDRESS, data)
    assert Run.objects.get().options["judge"] is False


def test_guidance_can_be_chosen(signed_in, version):
    guidance = make_guidance(version.suite)
    signed_in().post(ADDRESS, given(start="yes", guidance=str(guidance.pk)))
    assert Run.objects.get().guidance == guidance


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"trials": "1O"}, "Write a whole number, such as 3."),
        ({"trials": "0"}, "Write 1 or more."),
        ({"trials": "1001"}, "Write 1000 or less."),
        ({"only": "nothing"}, "has no scenario"),
        ({"tags": "nowhere"}, "No scenario of Basics is left"),
        ({"targets": ["gone"]}, "There is no target called “gone”"),
        ({"suite": "gone"}, "Select a valid choice"),
    ],
    ids=["no number", "too few", "too many", "unknown key", "unknown tag", "unknown target", "unknown suite"],
)
def test_a_mistake_is_told_and_starts_nothing(signed_in, version, changes, sentence):
    response = signed_in().post(ADDRESS, given(start="yes", **changes))
    assert response.status_code == 422
    assert sentence in response.content.decode().replace("&#x27;", "'")
    assert not Run.objects.exists()


def test_a_mistake_stands_beside_its_field(signed_in, version):
    text = signed_in().post(ADDRESS, given(start="yes", trials="x")).content.decode()
    assert '<small id="trials-note"><span class="error">Write a whole number' in text
    assert 'aria-invalid="true"' in text


def test_what_is_chosen_stays_chosen(signed_in, version, project):
    guidance = make_guidance(version.suite, "AGENTS.md \u202ev1 <b>")
    make_guidance(make_suite(project, name="Second").suite)
    text = signed_in().post(ADDRESS, given(plan="yes", guidance=str(guidance.pk))).content.decode()
    chosen = re.findall(r'<option value="([^"]*)" selected>', text)
    assert chosen == ["basics", str(guidance.pk)]
    assert re.findall(r'<optgroup label="([^"]*)">', text) == ["Basics", "Second"]
    assert "\u202e" not in text
    assert "v1 &lt;b&gt;" in text


def test_guidance_of_another_suite_is_refused(signed_in, version, project):
    other = make_guidance(make_suite(project, name="Second").suite)
    text = signed_in().post(ADDRESS, given(start="yes", guidance=str(other.pk))).content.decode()
    assert "This guidance belongs to Second." in text


@pytest.mark.parametrize("field", ["suite", "targets", "guidance"])
def test_nothing_of_another_project_can_be_run(signed_in, version, field):
    other = make_project("other")
    foreign = make_suite(other, name="Foreign")
    make_target(other, "foreign")
    changes = {"suite": "foreign", "targets": ["foreign"], "guidance": str(make_guidance(foreign.suite).pk)}
    assert signed_in().post(ADDRESS, given(start="yes", **{field: changes[field]})).status_code == 422
    assert not Run.objects.exists()


def test_the_form_takes_what_the_address_says(signed_in, version):
    text = signed_in().get(f"{ADDRESS}?suite=basics&targets=local&models=gpt-5").content.decode()
    assert 'value="gpt-5"' in text
    assert re.search(r'name="targets" id="target-\d+" value="local" checked', text)


def test_a_target_says_whether_it_can_start_and_what_to_do(signed_in, version, project):
    for name, available, sentence in (
        ("ready", True, ""),
        ("broken", False, "No executable 'codex' on PATH."),
    ):
        TargetCheck.objects.create(
            target=make_target(project, name),
            at=timezone.now(),
            worker="eval-2",
            available=available,
            sentence=sentence,
            version="2.1",
        )
    make_target(project, "proposed", accepted=False)
    text = signed_in().get(ADDRESS).content.decode()
    rows = dict(re.findall(r'name="targets".*?value="(\w+)".*?badge [^>]*>([^<]*)<', text, re.DOTALL))
    assert rows == {"local": "not checked", "ready": "ready", "broken": "cannot start"}
    assert "No executable &#39;codex&#39; on PATH." in text
    assert "Found on eval-2," in text
    assert text.count("Found on") == 1


KEYS = ("a", "b", "c", "d", "e", "f")
FETCHED = {"HX-Request": "true"}


@pytest.fixture
def large(project):
    """Return a suite of six scenarios that ran three times on `local`."""
    if not project.targets.exists():
        make_target(project)
    version = make_suite(project, KEYS, name="Large", tags=["smoke"])
    for failing, cost_usd in (("a", 0.09), ("b", 0.1), ("c", 0.11)):
        outcomes = {key: ["fail" if key == failing else "pass"] * 3 for key in KEYS}
        past_run(version, outcomes, cost_usd=cost_usd, seconds=30.0)
    return version


def plain(text):
    """Return what a page says, its elements taken off."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text.replace("&#39;", "'").replace("&#x27;", "'")))


def plan_of(client, **changes):
    text = client.post(ADDRESS, given(**changes), headers=FETCHED).content.decode()
    return plain(text.partition("</aside>")[0])


def test_the_plan_says_cost_time_and_what_it_can_show(signed_in, large):
    text = plan_of(signed_in(), suite="large", concurrency="4")
    assert "Trials 18 6 scenarios" in text
    # 18 · (0.1 ± 4.303 · 0.01 · sqrt(1 + 1/3)): trials of a run do not differ.
    assert "Cost, estimated $1.80 $0.912 to $2.69" in text
    assert "Time 2 min 4 at once" in text
    assert re.search(r"A drop or rise of the pass rate by \d+ points or more, four times out of five", text)
    assert "From 6 scenarios, their spread in the last 3 runs, 80 % power, 5 % two-sided" in text


def test_the_page_has_its_plan_at_once(signed_in, large):
    text = plain(signed_in().get(f"{ADDRESS}?suite=large&targets=local&trials=3").content.decode())
    assert "Start 18 trials" in text
    assert "Cost, estimated $1.80" in text


def test_each_number_of_trials_has_its_cost_and_is_one_press_away(signed_in, large):
    text = signed_in().post(ADDRESS, given(suite="large"), headers=FETCHED).content.decode()
    rows = re.findall(r'<tr[^>]*><th scope="row" class="num">.*?</tr>', text)
    assert [re.search(r'name="trials" value="(\d+)"', row)[1] for row in rows] == ["1", "3", "5", "10", "20"]
    assert [bool(re.search(r'aria-pressed="true"', row)) for row in rows] == [
        False,
        True,
        False,
        False,
        False,
    ]
    assert [re.search(r"\$[\d.]+", row)[0] for row in rows] == ["$0.600", "$1.80", "$3.00", "$6.00", "$12.00"]
    assert [re.search(r"± \d+ pts|none", row)[0] for row in rows][-1].startswith("± ")
    assert all(re.search(r"± \d+ pts|none", row) for row in rows)


def test_the_number_that_was_pressed_is_the_fields(signed_in, large):
    text = signed_in().post(ADDRESS, given(suite="large", trials=["3", "10"], plan="yes")).content.decode()
    assert "Start 60 trials" in text
    assert re.search(r'name="trials" value="10"[^>]*id="id_trials"', text)
    headers = {**FETCHED, "HX-Trigger-Name": "trials"}
    swapped = signed_in("runner").post(ADDRESS, given(trials=["3", "10"]), headers=headers).content.decode()
    assert re.search(r'<input[^>]*value="10"[^>]*hx-swap-oob="true"', swapped)


def test_a_number_that_is_typed_is_left_alone(signed_in, large):
    text = signed_in().post(ADDRESS, given(suite="large"), headers=FETCHED).content.decode()
    assert not re.search(r"<input[^>]*hx-swap-oob", text)


def test_without_history_it_says_so_in_words(signed_in, version):
    text = plan_of(signed_in())
    assert "Cost, estimated · not known" in text
    assert "· Not run yet on this target, so no estimate." in text
    assert "$" not in text


def test_a_cost_that_no_run_told_is_not_applicable(signed_in, version):
    past_run(version, cost_usd=None)
    text = plan_of(signed_in())
    assert "Cost, estimated n/a no run told its cost" in text
    assert "$" not in text


def test_what_is_only_partly_known_says_of_how_many_trials(signed_in, large, project):
    make_target(project, "new")
    text = plan_of(signed_in(), suite="large", targets=["local", "new"])
    assert "Start 36 trials" in text
    assert "$0.912 to $2.69, of 18 trials only" in text
    assert "1 at once" not in text
    assert "new: not run yet on this target, so no estimate." in text


def test_a_target_says_what_a_trial_costs_there(signed_in, version, project):
    past_run(version, cost_usd=0.107)
    past_run(version, cost_usd=None, target=make_target(project, "silent"))
    make_target(project, "unused")
    text = signed_in().get(ADDRESS).content.decode()
    rows = re.findall(r'name="targets".*?value="(\w+)".*?<td class="num">(.*?)</td>', text, re.DOTALL)
    assert {name: plain(cost).strip() for name, cost in rows} == {
        "local": "$0.107",
        "silent": "n/a",
        "unused": "· not known",
    }


def test_the_plan_is_shown_as_a_command(signed_in, version):
    text = plan_of(signed_in(), concurrency="2")
    assert "manage.py run_scenarios basics --project tools --target local --trials 3 --concurrency 2" in text


def test_what_is_hidden_in_a_name_is_shown(signed_in, version, project):
    make_target(project, "x\u202egpj.exe\x1b[31m<script>")
    text = signed_in().post(ADDRESS, given(targets=["x\u202egpj.exe\x1b[31m<script>"]), headers=FETCHED)
    assert "\u202e" not in text.content.decode()
    assert "<script>" not in text.content.decode()
    assert "--target" in text.content.decode()


def test_chips_narrow_the_run_and_keep_what_is_chosen(signed_in, large):
    client = signed_in()
    text = client.get(f"{ADDRESS}?suite=large&targets=local&trials=5&judge=false").content.decode()
    chips = dict(re.findall(r'<a class="chip" href="([^"]*)">(.*?)</a>', text))
    links = {plain(label).strip(): link.replace("&amp;", "&") for link, label in chips.items()}
    assert list(links) == ["smoke 6", "failed last time 1"]
    after = client.get(ADDRESS + links["failed last time 1"]).content.decode()
    assert re.search(r'name="only" value="c"', after)
    assert re.search(r'class="chip" aria-current="true"[^>]*>failed last time', after)
    assert "Start 5 trials" in after
    assert "checked" not in re.search(r'<input[^>]*name="judge"[^>]*>', after)[0]


def test_chips_follow_the_suite(signed_in, version, large):
    text = signed_in().post(ADDRESS, given(), headers=FETCHED).content.decode()
    assert '<div class="chips" id="only" hx-swap-oob="true">' in text
    assert "smoke <b>2</b>" in text


def test_a_mistake_stands_beside_its_field_when_the_plan_is_fetched(signed_in, version):
    response = signed_in().post(ADDRESS, given(trials="0", tier="x"), headers=FETCHED)
    text = response.content.decode()
    assert response.status_code == 200
    assert (
        '<small id="trials-note" hx-swap-oob="true"><span class="error">Write 1 or more.</span></small>'
        in text
    )
    assert '<small id="tier-note" hx-swap-oob="true"><span class="error">Write a whole number' in text
    assert '<small id="models-note" hx-swap-oob="true">By commas' in text


@pytest.mark.parametrize(("planned", "starts"), [("6", True), ("4", False), ("", False)])
def test_no_more_is_started_than_the_button_said(signed_in, version, planned, starts):
    response = signed_in().post(ADDRESS, given(start="yes", planned=planned))
    assert response.status_code == (302 if starts else 409)
    assert Trial.objects.count() == (6 if starts else 0)
    if not starts:
        assert "It comes to 6 now." in response.content.decode()


def test_the_last_upload_is_what_runs(signed_in, version):
    newer = make_suite(version.suite.project, ("z",), name="Second")
    newer.suite.uploads.update(suite=version.suite)
    newer.suite, newer.number = version.suite, 2
    newer.save()
    version.suite.uploads.create(suite_version=version)
    signed_in().post(ADDRESS, given(start="yes"))
    assert Run.objects.get().suite_version == version


def test_what_is_named_twice_runs_once(signed_in, version):
    signed_in().post(ADDRESS, given(start="yes", targets=["local", "local"], models="a, a"))
    assert Run.objects.get().trials == 6


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
    data = given(suite="large", targets=names, models="a, b", plan="yes")
    with django_assert_max_num_queries(12):
        assert "Start 216 trials" in client.post(ADDRESS, data, headers=headers).content.decode()
    if not headers:
        with django_assert_max_num_queries(12):
            client.get(f"{ADDRESS}?suite=large&failed=last")


def test_without_a_suite_it_says_what_to_do(signed_in):
    assert "There is nothing to run yet" in signed_in().get(ADDRESS).content.decode()

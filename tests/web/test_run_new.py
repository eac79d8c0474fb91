"""Asking for runs."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone

from runs.models import Run, TargetCheck
from tests.builders import make_guidance, make_project, make_suite, make_target

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
        ({"trials": "0"}, "greater than or equal to 1"),
        ({"only": "nothing"}, "has no scenario"),
        ({"tags": "nowhere"}, "No scenario of Basics is left"),
        ({"targets": ["gone"]}, "There is no target called “gone”"),
        ({"suite": "gone"}, "Select a valid choice"),
    ],
    ids=["no number", "too few", "unknown key", "unknown tag", "unknown target", "unknown suite"],
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
    assert 'name="targets" value="local" checked' in text


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
    rows = dict(re.findall(r'<li><label>.*?value="(\w+)".*?badge [^>]*>([^<]*)<', text, re.DOTALL))
    assert rows == {"local": "not checked", "ready": "ready", "broken": "cannot start"}
    assert "No executable &#39;codex&#39; on PATH." in text
    assert "Found on eval-2," in text
    assert text.count("Found on") == 1


def test_without_a_suite_it_says_what_to_do(signed_in):
    assert "There is nothing to run yet" in signed_in().get(ADDRESS).content.decode()

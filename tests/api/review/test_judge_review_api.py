"""Overruling, resolving, judging and grading again over REST."""

from __future__ import annotations

import pytest

from runs.models import JudgeCalibration, Reassessment, Run, Trial
from tests.builders import close, make_member, make_run, make_suite
from tests.runs.jobs import do_job
from tests.runs.review.judged import judged_trial
from tests.runs.review.test_assessing_again import run as shell_run  # noqa: F401  # a fixture


@pytest.fixture
def trial(project):
    run = make_run(make_suite(project, ("create",), name="Basics"))
    judged_trial(run, passed=False)
    return close(run).trial_set.get()


def test_a_score_is_overruled_once(api, project, trial):
    client = api("runner", owner=make_member(project, "runner", "ada"))
    position = next(n for n, each in enumerate(trial.scores) if each["layer"] == "gates")
    sent = {"score": position, "passed": True, "reason": "The file is there."}
    made = client.post(f"/trials/{trial.pk}/overrules", sent)
    assert (made.status_code, made.json()["by"], made.json()["original"]["passed"]) == (201, "ada", False)
    second = api("runner", owner=make_member(project, "runner", "bob"))
    assert second.post(f"/trials/{trial.pk}/overrules", sent).status_code == 422
    assert len(client.get(f"/trials/{trial.pk}/overrules").json()["items"]) == 1
    assert api("viewer").post(f"/trials/{trial.pk}/overrules", sent).status_code == 403


def test_a_disagreement_is_resolved_once(api, project, trial):
    sent = {"right": "gate_weak", "note": "It checks too little."}
    client = api("runner", owner=make_member(project, "runner", "ada"))
    agreeing = client.post(f"/trials/{trial.pk}/resolution", sent)
    assert (agreeing.status_code, "There is nothing to resolve." in agreeing.json()["detail"]) == (422, True)
    passed = [each if each["layer"] == "judge" else {**each, "passed": True} for each in trial.scores]
    Trial.objects.filter(pk=trial.pk).update(scores=passed)
    found = client.post(f"/trials/{trial.pk}/resolution", sent).json()
    assert (found["right"], found["by"], found["note"]) == ("gate_weak", "ada", "It checks too little.")
    again = api("runner", owner=make_member(project, "runner", "bob"))
    assert again.post(f"/trials/{trial.pk}/resolution", sent).status_code == 422


def test_calibrations_say_what_is_missing(api, trial):
    (found,) = api("viewer").get("/judge-calibrations").json()["items"]
    assert not found["calibrated"] and "30 more failing labels needed" in found["needs"]
    assert JudgeCalibration.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["judge", "grade"])
def test_a_run_is_assessed_again_and_adopted(api, settings, shell_run, kind):  # noqa: F811
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    run = Run.objects.select_related("project").get()
    client = api("runner", owner=make_member(run.project, "runner", "ada"), of=run.project)
    judge = {"judge_model": "strict", "max_usd": 1} if kind == "judge" else {}
    made = client.post(f"/runs/{run.pk}/reassessments", {"kind": kind, **judge}).json()
    assert made["finished"] is None
    do_job(Reassessment.objects.get(pk=made["id"]))
    (found,) = client.get(f"/runs/{run.pk}/reassessments").json()["items"]
    (pair,) = found["trials"]
    assert found["error"] == "" and pair["outcome"] == "pass"
    assert pair["new_outcome"] == ("fail" if kind == "judge" else "pass")
    assert Run.objects.get().outcome == "pass"
    assert client.post(f"/reassessments/{found['id']}/adopt").json() == {"trials": 1}
    assert Run.objects.get().outcome == pair["new_outcome"]

"""Review rounds and the queue of judges' statements over REST."""

from __future__ import annotations

import pytest

from runs.models import JudgeCalibration, JudgingRecord
from tests.builders import close, make_member, make_run, make_suite
from tests.runs.review.judged import VERSION, judged_trial

JUDGE = {"model": VERSION.model, "rubric": VERSION.rubric}


@pytest.fixture
def run(project):
    made = make_run(make_suite(project, ("create",), name="Basics"))
    for n in range(6):
        judged_trial(made, passed=n < 3)
    return close(made)


def test_a_round_is_drawn_and_labelled_blindly(api, project, run):
    client = api("runner")
    made = client.post("/review-rounds", {**JUDGE, "n": 4, "suite": "basics"})
    assert made.status_code == 201
    document = made.json()
    assert (document["labelled"], document["total"], document["suite"]) == (0, 4, "basics")
    first = document["items"][0]
    assert (first["judge_passed"], first["judge_criteria"]) == (None, None)
    assert first["criteria"] == ["clarity", "task"]
    shown = client.get(f"/review-items/{first['id']}").json()
    assert shown["task"] == "Do create." and shown["judge_passed"] is None
    sent = {"answer": "pass", "criteria": {"task": False}, "note": "Fine."}
    done = client.post(f"/review-items/{first['id']}/label", sent).json()
    assert (done["answer"], done["criteria_answers"], done["labelled"]) == ("pass", {"task": False}, True)
    assert done["judge_passed"] is not None and done["judge_criteria"].keys() == {"clarity", "task"}
    assert client.get(f"/review-rounds/{document['id']}").json()["labelled"] == 1
    assert client.get("/review-rounds").json()["items"][0]["labelled"] == 1
    assert JudgeCalibration.objects.get().passing == 1
    late = api("runner").post(f"/review-items/{first['id']}/label", {"answer": "fail"})
    assert (late.status_code, late.json()["id"]) == (422, "review/taken")


def test_a_trial_hides_the_judge_until_it_is_labelled(api, run):
    client = api("runner")
    item = client.post("/review-rounds", {**JUDGE, "n": 1}).json()["items"][0]
    trial = f"/trials/{item['trial']}"
    JudgingRecord.objects.update(content={"mismatch": True, "recomputed": 0.1})
    hidden = client.get(trial).json()
    assert (hidden["judgings"], hidden["warnings"]) == ([], [])
    assert (hidden["outcome"], hidden["composite"]) == (None, None)
    assert "review round" in hidden["judge_hidden"] and hidden["gates"]
    assert not {"judge", "evaluators"} & {each["layer"] for each in hidden["scores"]}
    for asked in ("?judge=show", ""):
        shown = client.get(trial + asked).json()
        assert shown["judgings"] and shown["outcome"] and not shown["judge_hidden"]
        assert "its criteria give 0.10 by the rubric's weights" in shown["warnings"][0]
        assert "judge" in {each["layer"] for each in shown["scores"]}
        client.post(f"/review-items/{item['id']}/label", {"answer": "pass"})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"suite": "nowhere"}, "There is no suite 'nowhere'."),
        ({"model": "other"}, "No unlabelled judgings"),
    ],
)
def test_samples_that_cannot_be_drawn(api, run, changes, sentence):
    refused = api("runner").post("/review-rounds", {**JUDGE, **changes})
    assert refused.status_code == 422 and sentence in refused.content.decode()


def test_items_are_taken_once(api, project, run):
    ada, bob = make_member(project, "runner", "ada"), make_member(project, "runner", "bob")
    one, two = api("runner", owner=ada), api("runner", owner=bob)
    item = one.post("/review-rounds", {**JUDGE, "n": 1}).json()["items"][0]["id"]
    assert one.post(f"/review-items/{item}/assignee", {"assignee": "ada"}).json()["assignee"] == "ada"
    late = two.post(f"/review-items/{item}/assignee", {"assignee": "bob"})
    assert (late.status_code, late.json()["id"]) == (422, "review/taken")
    stranger = two.post(f"/review-items/{item}/assignee", {"assignee": "eve", "seen": "ada"})
    assert "eve is not a member" in stranger.content.decode()
    assert two.post(f"/review-items/{item}/assignee", {"seen": "ada"}).json()["assignee"] is None


def test_the_queue_groups_statements(api, project, run):
    group = next(
        each for each in api("viewer").get("/review-queue").json()["items"] if each["polarity"] == "negative"
    )
    assert (group["statements"], "assignee" in group) == (3, False)
    assert all(each["key"] and each["statements"] for each in group["wordings"])

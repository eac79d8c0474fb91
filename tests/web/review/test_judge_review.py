"""Reviewing judges on pages: statements, overruling, rounds, disagreements, rationales, assessing again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from runs.models import JudgeCalibration, JudgingRecord, Overrule, Resolution, Review, Run, Trial
from scenarios.models import SuiteVersion
from tests.builders import close, make_guidance, make_run, make_trial, score
from tests.runs.review.judged import VERSION, judged_trial
from tests.web.screen import Part, parse

pytestmark = pytest.mark.one_database

SignIn = Callable[..., Client]


@pytest.fixture
def run(version: SuiteVersion) -> Run:
    made = make_run(version, tool_version="1.0")
    for n in range(6):
        judged_trial(made, passed=n < 3)
    return close(made)


def statements(page: Part) -> list[Part]:
    """Return the groups of statements on the queue, in its order."""
    return page.all(".is-queue > li")


def kind(statement: Part) -> str:
    return statement.all(".tag")[0].text


def test_agreeing_stores_the_persons_name(signed_in: SignIn, run: Run) -> None:
    client = signed_in("runner")
    one = JudgingRecord.objects.get(trial=run.trial_set.last())
    sent = {"refs": f"{one.pk}:negative:0", "word": "disagree", "note": "It ran once.", "key": "1"}
    client.post("/p/tools/reviews/statements/", sent)
    (found,) = Review.objects.all()
    assert (found.word, found.note) == ("disagree", "It ran once.") and found.by is not None
    page = parse(client.get(f"/p/tools/trials/{one.trial_id}/"))
    assert "disagree – It ran once." in page


def test_one_act_reviews_a_group(signed_in: SignIn, run: Run) -> None:
    client = signed_in("runner")
    page = parse(client.get("/p/tools/reviews/"))
    (issue,) = [each for each in statements(page) if kind(each) == "issue"]
    assert "3 statements in 3 trials" in issue
    sent = {"refs": issue.form_data["refs"], "word": issue.button("Agree")["value"]}
    answer = client.post("/p/tools/reviews/statements/", sent, HTTP_HX_REQUEST="true")
    assert answer.status_code == 200 and Review.objects.count() == 3
    page = parse(client.get("/p/tools/reviews/"))
    assert "3 agree" in page and "1 of 2 groups reviewed." in page
    left = statements(parse(client.get("/p/tools/reviews/?unreviewed=yes")))
    assert [kind(each) for each in left] == ["highlight"]


def test_bad_reviews_are_refused(signed_in: SignIn, run: Run) -> None:
    one, client = JudgingRecord.objects.first(), signed_in("runner")
    assert one is not None
    own, none = f"{one.pk}:negative:7", "999999:negative:0"
    for refs, word, status in (
        ("x", "agree", 422),
        (own, "maybe", 422),
        (none, "agree", 404),
        (own, "agree", 422),
    ):
        sent = {"refs": refs, "word": word}
        answer = client.post("/p/tools/reviews/statements/", sent, HTTP_HX_REQUEST="true")
        assert answer.status_code == status and not Review.objects.exists(), sent


def test_the_queue_is_filtered(signed_in: SignIn, run: Run) -> None:
    client = signed_in("viewer")
    expected: dict[str, set[str]] = {
        "tool_version=1.0": {"issue", "highlight"},
        "criterion=task": {"issue"},
        f"judge={VERSION.value}": {"issue", "highlight"},
        **{query: set() for query in ("tool_version=2.0", "judge=x:other", "suite=nowhere", "guidance=999")},
    }
    for query, kinds in expected.items():
        page = parse(client.get(f"/p/tools/reviews/?{query}"))
        assert {kind(each) for each in statements(page)} == kinds, query
        assert ("No statements match." in page) == (not kinds), query


def test_similar_wordings_are_one_group(signed_in: SignIn, version: SuiteVersion) -> None:
    made = make_run(version)
    for text in (
        "Ran export three times.",
        "ran  export three times",
        "Ran the export three times.",
        "Read no help.",
    ):
        judged_trial(made, content={"negatives": [text], "positives": []})
    first, second = statements(parse(signed_in().get("/p/tools/reviews/")))
    assert "3 statements in 3 trials" in first and "2 wordings" in first
    assert "1 statement in 1 trial" in second and "wordings" not in second


def test_a_long_statement_is_marked_as_cut(signed_in: SignIn, version: SuiteVersion) -> None:
    judging = judged_trial(make_run(version), content={"negatives": ["x" * 5000], "positives": []})
    client = signed_in()
    mark = "… of 5,000 characters"
    for address in ("reviews/", "reviews/rationales/", f"trials/{judging.trial_id}/"):
        assert parse(client.get(f"/p/tools/{address}")).count(mark) == 1


def test_overruling_and_undoing_on_the_page(signed_in: SignIn, version: SuiteVersion) -> None:
    client, run = signed_in("runner"), make_run(version)
    trial = make_trial(run, outcome="fail", scores=[score("judge", "judge", 0.4, False)])
    close(run)
    address = f"/p/tools/trials/{trial.pk}/overrule/"
    page = client.post(address, {"score": 0, "verdict": "pass", "reason": "Fine."}, follow=True)
    assert "Fine." in parse(page) and Trial.objects.get(pk=trial.pk).outcome == "pass"
    client.post(f"/p/tools/overrules/{Overrule.objects.get().pk}/undo/")
    assert Trial.objects.get(pk=trial.pk).outcome == "fail"
    refused = client.post(address, {"score": 0, "verdict": "pass"}, follow=True)
    assert "Give a reason" in parse(refused)


def test_numbers_are_overruled_on_the_page(signed_in: SignIn, version: SuiteVersion) -> None:
    run, client = make_run(version), signed_in("runner")
    scores = [score("judge", "judge", 0.4, False), score("judge", "criterion.task", 0.2)]
    trial = make_trial(run, outcome="fail", scores=scores)
    close(run)
    address = f"/p/tools/trials/{trial.pk}/overrule/"
    for sent, sentence in (
        ({"score": "1", "value": "x"}, "The new score isn't a number."),
        ({"score": "1", "value": "2"}, "outside the rubric's scale"),
        ({"score": "", "value": "1"}, "Choose a score"),
        ({"score": "0"}, "Choose a new verdict, or give a new score"),
        ({"score": "9", "verdict": "pass"}, "no score at position 9"),
        ({"score": "1", "value": "0.9"}, "Computed from overruled criteria; the judge reported 0.40."),
    ):
        assert sentence in parse(client.post(address, {"reason": "Fine.", **sent}, follow=True)), sent


def test_disagreements_most_confident_first(signed_in: SignIn, version: SuiteVersion) -> None:
    run = make_run(version)
    for sure, passed in ((0.5, False), (0.95, False), (0.7, True)):
        gate = score("gates", "file_exists", float(not passed), not passed)
        scores = [gate, score("judge", "judge", 0.9 if passed else 0.4, passed)]
        one = judged_trial(run, passed=passed, content={"confidence": sure})
        Trial.objects.filter(pk=one.trial_id).update(scores=scores, outcome="fail")
    close(run)
    client = signed_in("runner")
    page = parse(client.get("/p/tools/reviews/disagreements/"))
    weak, fooled = page.table("Gates passed, judge failed"), page.table("Gates failed, judge passed")
    assert [row.cell("Confidence").text for row in weak.rows] == ["0.95", "0.50"]
    assert [row.cell("Confidence").text for row in fooled.rows] == ["0.70"]
    button = weak.rows[0].button("Gate too weak")
    trial = Trial.objects.get(judgings__content__confidence=0.95).pk
    client.post(
        f"/p/tools/trials/{trial}/resolution/", {"right": button["value"], "note": "It only checks a name."}
    )
    assert Resolution.objects.get().right == "gate_weak"
    page = parse(client.get("/p/tools/reviews/disagreements/"))
    last = page.table("Gates passed, judge failed").rows[-1]
    assert last.header == f"create {trial} run {run.pk}"
    assert "It only checks a name." in last.cell("Who was right")
    other = signed_in("runner").post(
        f"/p/tools/trials/{trial}/resolution/", {"right": "judge_fooled"}, follow=True
    )
    assert "nothing changed" in parse(other)


def test_uncalibrated_judges_have_a_badge(signed_in: SignIn, run: Run) -> None:
    trial = run.trial_set.first()
    assert trial is not None
    for address in (f"trials/{trial.pk}/", f"runs/{run.pk}/"):
        assert parse(signed_in().get(f"/p/tools/{address}")).text.count("not calibrated") == 1
    JudgeCalibration.objects.update(passing=30, failing=30, lower=0.9)
    for address in (f"trials/{trial.pk}/", f"runs/{run.pk}/"):
        assert "! not calibrated" not in parse(signed_in().get(f"/p/tools/{address}"))
    page = parse(signed_in().get("/p/tools/reviews/calibration/"))
    assert "30 more passing labels and 30 more failing labels needed." in page


def test_a_verdict_is_reviewed_on_its_trials_page(signed_in: SignIn, run: Run) -> None:
    client = signed_in("runner")
    one = JudgingRecord.objects.filter(passed=False).first()
    assert one is not None
    (verdict,) = [
        each
        for each in parse(client.get(f"/p/tools/trials/{one.trial_id}/")).all("[data-statement]")
        if "Verdict: failed" in each
    ]
    client.post("/p/tools/reviews/statements/", {"refs": verdict.form_data["refs"], "word": "disagree"})
    row = parse(client.get("/p/tools/reviews/calibration/")).table(str(VERSION)).row("Whole judgment")
    assert row.cell("Labels").text == "1 pass, 0 fail"
    assert row.cell("TPR").text.startswith("0")


def test_rationales_stand_in_columns(signed_in: SignIn, version: SuiteVersion, run: Run) -> None:
    other = make_run(version, tool_version="2.0", guidance=make_guidance(version.suite))
    judged_trial(other, content={"criteria": {"task": 0.5}})
    page = parse(signed_in().get("/p/tools/reviews/rationales/?suite=basics&criterion=task"))
    assert [each.text for each in page.all(".columns > section > header")] == [
        "2.0 · AGENTS.md v1 1 run, 1 judging, mean 0.50",
        "1.0 · no guidance 1 run, 6 judgings, mean 0.55",
    ]


def test_reasons_of_a_criterion_are_shown(signed_in: SignIn, version: SuiteVersion) -> None:
    run = make_run(version, tool_version="1.0")
    for why in ("It wrote the wrong file.", "It wrote a wrong file.", ""):
        reasons = {"task": why} if why else {}
        one = judged_trial(run, passed=False, content={"reasons": reasons})
    named = ["[task] Forgot the header.", "Too slow."]
    judged_trial(run, passed=False, content={"negatives": named})
    close(run)
    client = signed_in("runner")
    queue = statements(parse(client.get("/p/tools/reviews/?criterion=task")))
    assert {each.all("p")[0].text for each in queue} == {
        "reason It wrote a wrong file.",
        "issue [task] Forgot the header.",
        "issue Ran export three times.",
    }, "only a judging that says nothing of the criterion shows all"
    (reason,) = [each for each in queue if kind(each) == "reason"]
    first = reason.form_data["refs"].split(",")[0]
    client.post("/p/tools/reviews/statements/", {"refs": first, "word": "agree"})
    assert Review.objects.get().polarity == "criterion"
    page = client.get("/p/tools/reviews/rationales/?suite=basics&criterion=task")
    assert "Reasons" in parse(page) and "It wrote the wrong file." in parse(page)
    trial = JudgingRecord.objects.exclude(pk=one.pk).earliest("pk").trial_id
    assert "It wrote the wrong file." in parse(client.get(f"/p/tools/trials/{trial}/"))


def test_few_queries(signed_in: SignIn, run: Run, django_assert_max_num_queries: Any) -> None:
    trial = run.trial_set.first()
    assert trial is not None
    client = signed_in("runner")
    reviews = (f"reviews/{part}" for part in ("", "disagreements/", "calibration/", "rationales/"))
    for address in (*reviews, f"trials/{trial.pk}/", f"runs/{run.pk}/again/"):
        # Session and membership are two of them.
        with django_assert_max_num_queries(14, info=address):
            client.get(f"/p/tools/{address}")

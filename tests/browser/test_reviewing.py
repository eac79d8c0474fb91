"""Reviewing a judge in a browser: by keys, overruling, labelling, resolving."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.models import JudgingRecord, Overrule, ReassessedTrial, Reassessment, Resolution, Review, Run, Trial
from runs.review.overruling import overrule
from tests.browser.conftest import SCREENSHOTS, follow
from tests.builders import close, make_guidance, make_member, make_run, make_suite, score
from tests.runs.review.judged import judged_trial, judging


@pytest.fixture
def run(project: Any) -> Run:
    made = make_run(make_suite(project, ("create",), name="Basics"), tool_version="1.0")
    for n in range(4):
        passed = n < 2
        one = judged_trial(made, passed=passed)
        scores = [score("gates", "file_exists", 1.0, True), score("judge", "judge", one.score, passed)]
        Trial.objects.filter(pk=one.trial_id).update(scores=scores)
    return close(made)


def test_keys_review_a_group_of_the_queue(
    as_admin: Page, live_server: Any, run: Run, complaints: list[str]
) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/reviews/")
    as_admin.keyboard.press("j")
    as_admin.keyboard.press("d")
    expect(as_admin.locator("[data-statement]").first).to_contain_text("ada: disagree")
    assert set(Review.objects.values_list("word", flat=True)) == {"disagree"}
    as_admin.screenshot(path=SCREENSHOTS / "reviewing-queue.png", full_page=True)
    as_admin.keyboard.press("?")
    expect(as_admin.locator("#keys")).to_have_attribute("open", "")
    assert complaints == []


def test_keys_review_and_overrule_on_a_trial(
    as_admin: Page, live_server: Any, run: Run, complaints: list[str]
) -> None:
    trial = run.trial_set.last()
    assert trial is not None
    as_admin.goto(f"{live_server.url}/p/tools/trials/{trial.pk}/")
    as_admin.keyboard.press("r")
    as_admin.keyboard.press("a")
    expect(as_admin.locator("[data-statement]").first).to_contain_text("ada: agree")
    as_admin.locator("[data-statement]").first.focus()
    as_admin.keyboard.press("o")
    as_admin.get_by_label("pass", exact=True).check()
    as_admin.get_by_label("Reason").fill("The judge missed the file.")
    as_admin.screenshot(path=SCREENSHOTS / "reviewing-trial.png", full_page=True)
    as_admin.get_by_role("button", name="Overrule").click()
    expect(as_admin.locator("#main")).to_contain_text("ada overruled judge/judge")
    assert Trial.objects.get(pk=trial.pk).outcome == "pass"
    as_admin.get_by_role("button", name="Undo").click()
    expect(as_admin.locator("#main")).to_contain_text("Put the original score back.")
    assert complaints == []


@pytest.mark.slow
def test_a_disagreement_is_resolved_without_script(without_script: Page, live_server: Any, run: Run) -> None:
    without_script.goto(f"{live_server.url}/p/tools/reviews/disagreements/")
    without_script.screenshot(path=SCREENSHOTS / "reviewing-disagreements.png", full_page=True)
    without_script.get_by_role("button", name="Gate too weak").first.click()
    expect(without_script.locator("#main")).to_contain_text("1 of 2 resolved")
    assert Resolution.objects.get().by is not None


@pytest.mark.slow
def test_a_number_is_overruled_and_the_second_person_is_warned(
    as_admin: Page, live_server: Any, run: Run, project: Any, complaints: list[str]
) -> None:
    trial = run.trial_set.last()
    assert trial is not None
    address = f"{live_server.url}/p/tools/trials/{trial.pk}/"

    def send(number: str) -> None:
        as_admin.get_by_text("Overrule a score…").click()
        as_admin.get_by_label("New score").fill(number)
        as_admin.get_by_label("Reason").fill("It did more than the judge saw.")
        follow(as_admin.get_by_role("button", name="Overrule"))

    as_admin.goto(address)
    as_admin.get_by_text("Overrule a score…").click()
    select = as_admin.get_by_role("combobox", name="Score")
    for takes, verdict, number in (("verdict", True, False), ("both", True, True)):
        select.select_option(
            index=select.locator("option").evaluate_all(
                "(all, takes) => all.findIndex((each) => each.dataset.takes === takes)", takes
            )
        )
        expect(as_admin.get_by_role("radio", name="pass")).to_be_visible(visible=verdict)
        expect(as_admin.get_by_label("New score")).to_be_visible(visible=number)
    as_admin.get_by_text("Overrule a score…").click()
    send("0.9")
    expect(as_admin.locator("#main")).to_contain_text(
        "ada overruled judge/judge: 0.90, passed, originally 0.40, failed."
    )
    as_admin.screenshot(path=SCREENSHOTS / "reviewing-overruled.png", full_page=True)
    assert Trial.objects.get(pk=trial.pk).outcome == "pass"
    follow(as_admin.get_by_role("button", name="Undo"))
    expect(as_admin.locator("#main")).to_contain_text("Put the original score back.")
    assert Trial.objects.get(pk=trial.pk).outcome == "fail"
    trial.refresh_from_db()
    overrule(trial, 1, value=0.8, reason="First.", by=make_member(project, "runner", "bob"))
    send("0.7")
    expect(as_admin.locator("#main")).to_contain_text("bob overruled this score on")
    assert Overrule.objects.filter(undone=None).get().value == 0.8
    assert complaints == []


@pytest.mark.slow
def test_reasons_of_a_criterion_are_read_in_columns(
    as_admin: Page, live_server: Any, run: Run, complaints: list[str]
) -> None:
    version = run.suite_version
    newer = make_run(version, tool_version="2.0", guidance=make_guidance(version.suite))
    judged_trial(newer, passed=False, content={"reasons": {"task": "It wrote to the wrong folder."}})
    close(newer)
    as_admin.goto(f"{live_server.url}/p/tools/reviews/rationales/")
    as_admin.get_by_label("Criterion").select_option("task")
    as_admin.get_by_role("button", name="Show").click()
    column = as_admin.locator("section.layer").filter(has_text="2.0 · AGENTS.md v1")
    expect(column).to_contain_text("It wrote to the wrong folder.")
    expect(column.get_by_role("heading", name="Reasons")).to_be_visible()
    as_admin.screenshot(path=SCREENSHOTS / "reviewing-rationales.png", full_page=True)
    assert complaints == []


@pytest.mark.slow
def test_a_run_is_judged_again_and_the_scores_adopted(
    as_admin: Page, live_server: Any, run: Run, complaints: list[str]
) -> None:
    trial = run.trial_set.last()
    assert trial is not None
    made = Reassessment.objects.create(run=run, kind="judge", judge_model="strict", finished=run.finished)
    scores = [score("gates", "file_exists", 1.0, True), score("judge", "judge", 0.9, True)]
    row = ReassessedTrial.objects.create(reassessment=made, trial=trial, scores=scores, outcome="pass")
    row.judgings.add(judging(trial, passed=True, counts=False))
    as_admin.goto(f"{live_server.url}/p/tools/runs/{run.pk}/again/")
    expect(as_admin.locator("#main")).to_contain_text("1 of 1 outcome differ")
    as_admin.screenshot(path=SCREENSHOTS / "reviewing-again.png", full_page=True)
    as_admin.get_by_role("button", name="Adopt these scores").click()
    expect(as_admin.locator("#main")).to_contain_text("Adopted the scores of 1 trial")
    assert Trial.objects.get(pk=trial.pk).outcome == "pass"
    assert JudgingRecord.objects.filter(trial=trial, counts=True).get().passed is True
    assert complaints == []


@pytest.mark.slow
def test_a_statement_is_reviewed_by_mouse_without_script(
    without_script: Page, live_server: Any, run: Run
) -> None:
    trial = run.trial_set.last()
    assert trial is not None
    without_script.goto(f"{live_server.url}/p/tools/trials/{trial.pk}/")
    statement = without_script.locator("[data-statement]").first
    statement.get_by_label("Note").fill("It ran once.")
    statement.get_by_role("button", name="Disagree").click()
    expect(without_script.locator("[data-statement]").first).to_contain_text("ada: disagree – It ran once.")

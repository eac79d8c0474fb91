"""Reviewing a judge in a browser: by keys, overruling, labelling, resolving."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.models import Resolution, Review, RoundItem, Run, Trial
from tests.browser.conftest import SCREENSHOTS
from tests.builders import close, make_run, make_suite, score
from tests.runs.reviewing.judged import VERSION, judged_trial


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


def test_a_round_is_drawn_and_labelled_by_keys(as_admin: Page, live_server: Any, run: Run) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/reviews/calibration/")
    as_admin.get_by_label("Judgings").fill("4")
    as_admin.get_by_role("button", name="Draw at random").click()
    expect(as_admin.locator("#main")).to_contain_text("0 of 4")
    as_admin.screenshot(path=SCREENSHOTS / "reviewing-round.png", full_page=True)
    for n in range(1, 5):
        as_admin.keyboard.press("j")
        as_admin.keyboard.press("a")
        expect(as_admin.locator("#main")).to_contain_text(f"{n} of 4")
    assert RoundItem.objects.filter(passed=True).count() == 4
    as_admin.goto(f"{live_server.url}/p/tools/reviews/calibration/?judge={VERSION.value}")
    as_admin.screenshot(path=SCREENSHOTS / "reviewing-calibration.png", full_page=True)
    expect(as_admin.locator("#main")).to_contain_text("26 more passing labels")


def test_a_disagreement_is_resolved_without_script(without_script: Page, live_server: Any, run: Run) -> None:
    without_script.goto(f"{live_server.url}/p/tools/reviews/disagreements/")
    without_script.screenshot(path=SCREENSHOTS / "reviewing-disagreements.png", full_page=True)
    without_script.get_by_role("button", name="Gate too weak").first.click()
    expect(without_script.locator("#main")).to_contain_text("1 of 2 resolved")
    assert Resolution.objects.get().by is not None

"""The list of runs by keyboard and mouse: selection, tags in place, views."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from runs.models import Run
from tests.builders import make_member, make_run, make_suite
from tests.web.results.runs.pages import tried


@pytest.fixture
def runs(project: Any) -> list[Run]:
    version = make_suite(project, name="Basics")
    return [make_run(version, tags=["nightly"]) for _ in range(12)]


@pytest.fixture
def page_of_runs(as_admin: Page, live_server: Any, runs: list[Run]) -> Page:
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    return as_admin


def test_tags_are_edited_in_place_and_selected_runs_compared_from_a_bar(
    page_of_runs: Page, runs: list[Run]
) -> None:
    page_of_runs.get_by_label(f"Edit the tags of run {runs[-1].pk}").click()
    field = page_of_runs.get_by_label(f"Tags of run {runs[-1].pk}, comma-separated")
    expect(field).to_be_focused()
    field.fill("nightly, release")
    field.press("Enter")
    row = page_of_runs.get_by_role("row").filter(has=page_of_runs.get_by_label(f"Select run {runs[-1].pk}"))
    expect(row.get_by_text("release")).to_be_visible()
    assert Run.objects.get(pk=runs[-1].pk).tags == ["nightly", "release"]
    compare = page_of_runs.get_by_role("button", name="Compare selected")
    expect(page_of_runs.get_by_role("button", name="Clear")).to_be_hidden()
    newest, older = runs[-1].pk, runs[-3].pk
    page_of_runs.get_by_label(f"Select run {newest}").check()
    expect(compare).to_be_disabled()
    page_of_runs.get_by_label(f"Select run {older}").check()
    status = page_of_runs.get_by_text("2 of at most 10 runs selected")
    expect(status).to_be_in_viewport()
    marked = page_of_runs.locator("tr.is-selected")
    expect(marked).to_have_count(2)
    expect(marked.first.get_by_label(f"Select run {newest}")).to_be_checked()
    page_of_runs.mouse.wheel(0, 10_000)
    expect(compare).to_be_in_viewport()
    compare.click()
    page_of_runs.wait_for_url(re.compile("/compare/"))
    for number in (newest, older):
        expect(page_of_runs.get_by_role("link", name=str(number)).first).to_be_visible()


@pytest.mark.slow
def test_a_change_for_the_worse_is_coloured(as_admin: Page, live_server: Any, project: Any) -> None:
    version = make_suite(project, name="Basics")
    for outcome in ("pass", "fail"):
        tried(version, outcome, "pass", trials=6)
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    change, other = (as_admin.get_by_text(text, exact=True).first for text in ("▼ 50 pts", "v1"))
    colours = [each.evaluate("one => getComputedStyle(one).color") for each in (change, other)]
    assert colours[0] != colours[1]


@pytest.mark.slow
def test_more_than_ten_runs_cannot_be_selected(page_of_runs: Page, runs: list[Run]) -> None:
    for run in runs[:10]:
        page_of_runs.get_by_label(f"Select run {run.pk}", exact=True).check()
    expect(page_of_runs.get_by_label(f"Select run {runs[11].pk}")).to_be_disabled()
    page_of_runs.get_by_role("button", name="Clear").click()
    expect(page_of_runs.get_by_label(f"Select run {runs[11].pk}")).to_be_enabled()


def test_keys_move_select_compare_and_open(page_of_runs: Page, runs: list[Run]) -> None:
    keyboard = page_of_runs.keyboard
    keyboard.press("j")
    keyboard.press("j")
    expect(page_of_runs.get_by_role("link", name=f"Run {runs[-2].pk}", exact=True)).to_be_focused()
    keyboard.press("x")
    expect(page_of_runs.get_by_label(f"Select run {runs[-2].pk}")).to_be_checked()
    keyboard.press("?")
    expect(page_of_runs.get_by_text("compare the selected runs")).to_be_visible()
    keyboard.press("k")
    keyboard.press("Enter")
    page_of_runs.wait_for_url(f"**/runs/{runs[-1].pk}/")


@pytest.mark.slow
def test_several_values_authors_and_days_filter_and_columns_are_chosen(
    page_of_runs: Page, runs: list[Run]
) -> None:
    grace = make_member(runs[0].project, "runner", "grace")
    long_ago = timezone.now() - timedelta(days=3)
    Run.objects.filter(pk__in=[run.pk for run in runs[:3]]).update(outcome="error")
    Run.objects.filter(pk__in=[run.pk for run in runs[:2]]).update(by=grace)
    Run.objects.filter(pk=runs[0].pk).update(created=long_ago)
    page_of_runs.reload()
    page_of_runs.get_by_text("State", exact=True).first.click()
    page_of_runs.get_by_label("error", exact=True).check()
    expect(page_of_runs.get_by_label(f"Select run {runs[3].pk}", exact=True)).to_have_count(0)
    page_of_runs.get_by_label("failed", exact=True).check()
    expect(page_of_runs.get_by_text("state error")).to_be_visible()
    expect(page_of_runs.get_by_text("state failed")).to_be_visible()
    page_of_runs.locator("summary").filter(has_text="Started by").click()
    page_of_runs.get_by_label("grace", exact=True).check()
    expect(page_of_runs.get_by_label(f"Select run {runs[2].pk}", exact=True)).to_have_count(0)
    page_of_runs.get_by_label("Until").fill(f"{timezone.now() - timedelta(days=2):%Y-%m-%d}")
    expect(page_of_runs.get_by_label(f"Select run {runs[1].pk}", exact=True)).to_have_count(0)
    expect(page_of_runs.get_by_label(f"Select run {runs[0].pk}", exact=True)).to_be_visible()
    expect(page_of_runs.get_by_role("columnheader", name="First-try")).to_be_visible()
    page_of_runs.locator("summary").filter(has_text="Columns").click()
    page_of_runs.get_by_label("First-try", exact=True).uncheck()
    expect(page_of_runs.get_by_role("columnheader", name="First-try")).to_have_count(0)
    page_of_runs.wait_for_url(re.compile("col="))

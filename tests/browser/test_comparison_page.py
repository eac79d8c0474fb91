"""Comparing runs in a browser: rows and documents open in place, menus move runs, more trials are planned."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import follow, go_back
from tests.builders import close, make_guidance, make_run, make_suite, make_target, make_trial
from tests.diverging import diverging_runs
from tests.runs.carrying import passed, start
from tests.runs.looking import carry


@pytest.fixture
def runs(project: Any) -> Any:
    """Return two runs whose failing trials part ways, with differing guidance, and a third one that passed."""
    make_target(project)
    version = make_suite(project, ("create", "export", "list"), name="Basics")
    base, new = diverging_runs(version)
    for run, line in ((base, "Use --env."), (new, "Use --target.")):
        run.guidance = make_guidance(version.suite, f"v{run.pk}")
        run.guidance.files = [{"path": "AGENTS.md", "content": f"# Todo\n{line}\n"}]
        run.guidance.save()
        run.save()
    third = make_run(version)
    make_trial(third, "list")
    return base, new, close(third)


def address(live_server: Any, *runs: Any, more: str = "") -> str:
    return f"{live_server.url}/p/tools/compare/?runs={','.join(str(run.pk) for run in runs)}{more}"


def table(page: Page, name: str) -> Any:
    return page.get_by_role("region", name=f"{name}, table").first


def unfold(page: Page, name: str) -> None:
    """Open a part of the page, unless it is open."""
    fold = page.locator("details.fold").filter(has_text=name).first
    if fold.get_attribute("open") is None:
        fold.locator("summary").first.click()


def open_and_narrow(page: Page) -> None:
    """Open a scenario, choose a chip, and open a measure, as links or in place."""
    page.get_by_role("link", name="create", exact=True).click()
    expect(page.locator(".is-apart")).to_contain_text("todo deploy --target test")
    expect(page.get_by_role("table", name="Difference of the answers")).to_contain_text("Could not deploy.")
    expect(page.get_by_role("link", name="create", exact=True)).to_have_attribute("aria-expanded", "true")
    page.get_by_role("group", name="Show").get_by_role("link", name="Worse").click()
    expect(page.get_by_role("group", name="Show").locator("[aria-current]")).to_contain_text("Worse")
    unfold(page, "Runs compared")
    page.get_by_role("link", name="Guidance difference").click()
    expect(page.get_by_role("table", name="Difference of AGENTS.md")).to_contain_text("Use --target.")
    unfold(page, "All measures")
    page.get_by_role("link", name="Pass rate", exact=True).click()
    expect(page.get_by_role("table", name="Pass rate by scenario")).to_contain_text("create")
    page.get_by_role("link", name="expert columns").click()
    expect(page.get_by_role("columnheader", name="Detectable")).to_be_visible()


def test_scenarios_measures_and_guidance_open_in_place(
    as_admin: Page, live_server: Any, runs: Any, complaints: list[str]
) -> None:
    as_admin.goto(address(live_server, *runs[:2]))
    expect(as_admin.get_by_text("In 2 of 3 newly failing scenarios")).to_be_visible()
    open_and_narrow(as_admin)
    go_back(as_admin)
    expect(as_admin.get_by_role("table", name="Pass rate by scenario")).to_be_visible()
    assert [*complaints, *as_admin.evaluate("window.violations")] == []


@pytest.mark.slow
def test_the_same_opens_without_script(without_script: Page, live_server: Any, runs: Any) -> None:
    without_script.goto(address(live_server, *runs[:2]))
    open_and_narrow(without_script)


@pytest.mark.slow
def test_how_to_read_it_stays_closed_once_dismissed(as_admin: Page, live_server: Any, runs: Any) -> None:
    as_admin.goto(address(live_server, *runs[:2]))
    unfold(as_admin, "All measures")
    expect(as_admin.get_by_text("Each difference is the mean")).to_be_visible()
    as_admin.get_by_role("button", name="Got it, don't open again").click()
    expect(as_admin.get_by_text("Each difference is the mean")).to_be_hidden()
    as_admin.goto(address(live_server, *runs[:2]))
    unfold(as_admin, "All measures")
    expect(as_admin.get_by_text("Each difference is the mean")).to_be_hidden()


def move_and_drop(page: Page, runs: Any) -> None:
    one, two, three = (run.pk for run in runs)
    page.locator("summary").get_by_text(f"Run {three}", exact=True).click()
    page.get_by_role("link", name="Make it the base").click()
    expect(page.get_by_role("heading", name=f"2 runs compared with run {three}")).to_be_visible()
    expect(table(page, "Scenarios")).to_contain_text("create")
    page.locator("summary").get_by_text(f"Run {two}", exact=True).click()
    page.get_by_role("link", name="Remove").click()
    expect(page.get_by_role("heading", name=f"Run {one} compared with run {three}")).to_be_visible()


def test_a_run_is_added_by_its_number_and_runs_are_moved_by_their_menus(
    as_admin: Page, live_server: Any, runs: Any, complaints: list[str]
) -> None:
    as_admin.goto(address(live_server, *runs[:2]))
    as_admin.get_by_text("Add a run…").click()
    as_admin.get_by_label("Run", exact=True).fill(str(runs[2].pk))
    follow(as_admin.get_by_role("button", name="Add", exact=True))
    expect(as_admin.get_by_role("heading", name="2 runs compared with run")).to_be_visible()
    move_and_drop(as_admin, runs)
    assert complaints == []


@pytest.mark.slow
def test_more_trials_are_planned_started_and_followed(
    as_admin: Page, live_server: Any, runs: Any, complaints: list[str]
) -> None:
    as_admin.goto(address(live_server, *runs[:2]))
    follow(as_admin.get_by_role("link", name="Run more trials…"))
    expect(as_admin.get_by_role("button", name="Start 30 trials")).to_be_visible()
    as_admin.get_by_label("list").uncheck()
    expect(as_admin.get_by_role("button", name="Start 20 trials")).to_be_visible()
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    as_admin.go_back()
    # The browser fills in again what was chosen, and the plan follows.
    expect(as_admin.get_by_label("list")).not_to_be_checked()
    expect(as_admin.get_by_role("button", name="Start 20 trials")).to_be_visible()
    as_admin.get_by_label("Trials of each scenario").fill("2")
    as_admin.get_by_label("Trials of each scenario").blur()
    as_admin.get_by_role("button", name="Start 8 trials").click()
    notice = as_admin.get_by_role("region", name="More trials")
    expect(notice).to_contain_text("trials are running")
    for run in runs[:2]:
        start(run)
    carry(runs[:2], lambda *_: passed())
    expect(notice).to_contain_text("More trials count here")
    assert [*complaints, *as_admin.evaluate("window.violations")] == []


@pytest.mark.slow
def test_more_trials_are_started_without_script(without_script: Page, live_server: Any, runs: Any) -> None:
    without_script.goto(address(live_server, *runs[:2]))
    without_script.get_by_role("link", name="Run more trials…").click()
    without_script.get_by_label("Trials of each scenario").fill("1")
    without_script.get_by_role("button", name="Update the plan").click()
    without_script.get_by_role("button", name="Start 6 trials").click()
    expect(without_script.get_by_text("Queued 6 more trials.")).to_be_visible()


@pytest.mark.slow
def test_any_two_trials_are_compared_from_a_trials_page(as_admin: Page, live_server: Any, runs: Any) -> None:
    trial, other = runs[1].trial_set.first(), runs[0].trial_set.last()
    as_admin.goto(f"{live_server.url}/p/tools/trials/{trial.pk}/")
    as_admin.get_by_text("Compare with…").click()
    as_admin.get_by_label("Another trial").fill(str(other.pk))
    as_admin.get_by_role("button", name="Compare", exact=True).click()
    expect(as_admin.get_by_role("heading", name=f"trial {trial.pk} compared with {other.pk}")).to_be_visible()

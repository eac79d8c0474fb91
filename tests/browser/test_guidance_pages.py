"""Guidance in a browser: try another text, follow a launch, compare, and go on to runs."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.models import Launch, Run
from scenarios.adopted_guidance import adopt_guidance
from tests.browser.conftest import follow
from tests.builders import close, make_guidance, make_run, make_suite, make_target, make_trial

GUIDANCE = "/p/tools/guidance"


@pytest.fixture
def pair(project: Any) -> Any:
    """Return two versions that ran together; the agent quotes the new line of the second."""
    make_target(project)
    version = make_suite(project, ("create", "export"), name="Basics")
    launch, found = Launch.objects.create(project=project, trigger="web"), []
    for name, outcome in (("poor", "fail"), ("good", "pass")):
        guidance = make_guidance(version.suite, name)
        guidance.files = [{"path": "AGENTS.md", "content": f"# Use\n\n- export: `tool export {name}`\n"}]
        guidance.save()
        quote = {"path": "AGENTS.md", "line": 3, "event": 0}
        reached = {"delivered": True, "in_context": None, "opened": False, "quoted": True, "quotes": [quote]}
        run = make_run(version, guidance=guidance, launch=launch, tool_version="2")
        for key in ("create", "export"):
            for _ in range(5):
                make_trial(run, key, outcome=outcome, detail={"exposure": reached})
        close(run)
        found.append(guidance)
    return found


@pytest.fixture
def open_page(as_admin: Page, live_server: Any, pair: Any) -> Any:
    """Return a function that opens an address in the browser."""

    def opened(path: str) -> Page:
        as_admin.goto(live_server.url + path)
        return as_admin

    return opened


def test_an_edited_text_is_tried_beside_the_old_one(open_page: Any, pair: Any, complaints: list[str]) -> None:
    page = open_page(f"{GUIDANCE}/{pair[0].pk}/")
    follow(page.get_by_role("link", name="Try other guidance…"))
    text = page.get_by_label("Text of the document")
    expect(text).to_have_value("# Use\n\n- export: `tool export poor`\n")
    text.fill("# Use\n\n- export: `tool export best`\n")
    text.blur()
    page.get_by_role("button", name="Start 4 trials").click()
    expect(page.get_by_text("4 trials left")).to_be_visible()
    runs = Run.objects.filter(launch=Launch.objects.latest("pk")).order_by("pk")
    assert [run.guidance.files[0]["content"].split()[-1] for run in runs] == ["poor`", "best`"]
    assert complaints == []


@pytest.mark.slow
def test_a_running_comparison_follows_its_trials(open_page: Any, pair: Any, complaints: list[str]) -> None:
    page = open_page("/p/tools/runs/new/?suite=basics")
    cards = page.get_by_role("group", name="Guidance")
    for box in cards.get_by_role("checkbox").all():
        box.set_checked(box.get_attribute("value") in {str(each.pk) for each in pair})
    page.get_by_role("button", name="Start 4 trials").click()
    expect(page.get_by_text("No comparable trials on both sides yet.")).to_be_visible()
    for run in Run.objects.filter(launch=Launch.objects.latest("pk")):
        for trial in run.trial_set.all():
            trial.state, trial.outcome = "finished", "pass"
            trial.save()
        run.state, run.open, run.passed = "finished", 0, 2
        run.save()
        close(run)
    expect(page.get_by_role("region", name="Verdict")).to_be_visible()
    assert complaints == []


def test_two_versions_are_compared_and_a_line_leads_to_its_trial(
    open_page: Any, pair: Any, complaints: list[str]
) -> None:
    page = open_page(f"{GUIDANCE}/{pair[1].pk}/")
    page.get_by_label("Compare with").select_option(str(pair[0].pk))
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("region", name="Verdict")).to_contain_text("Pass rate +100 points")
    page.get_by_role("link", name="export in B").click()
    expect(page.get_by_role("heading", name="export, trial 1 of 5")).to_be_visible()
    assert complaints == []


@pytest.mark.slow
def test_the_better_version_is_adopted_with_one_press(
    open_page: Any, pair: Any, complaints: list[str]
) -> None:
    adopt_guidance(pair[0], by=None)
    page = open_page(f"{GUIDANCE}/{pair[0].pk}/against/{pair[1].pk}/")
    page.get_by_role("button", name="Adopt as the suite's guidance").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("good is the best AGENTS.md so far")
    expect(page.get_by_text("Basics now uses good.")).to_be_visible()
    page.goto(page.url.split("?")[0] + f"{pair[1].pk}/against/{pair[0].pk}/")
    page.get_by_role("link", name="Show where it differs").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("compared with run")
    assert complaints == []

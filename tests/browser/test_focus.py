"""Where the focus is after a part of a page was swapped, and what screen readers announce."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.history import fill
from tests.builders import make_member, make_run, make_suite, make_target


def test_removing_a_member_is_announced_and_keeps_focus(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    make_member(project, "viewer", "grace")
    as_admin.goto(f"{live_server.url}/p/tools/settings/")
    as_admin.get_by_role("button", name="Remove grace").press("Enter")
    expect(as_admin.locator("#announcement")).to_have_text("Removed grace. Their tokens no longer work.")
    expect(as_admin.locator("#members")).to_be_focused()


def test_choosing_a_role_is_announced_and_keeps_focus(as_admin: Page, live_server: Any, project: Any) -> None:
    make_member(project, "viewer", "grace")
    as_admin.goto(f"{live_server.url}/p/tools/settings/")
    role = as_admin.get_by_label("Role of grace")
    role.focus()
    role.select_option("author")
    expect(as_admin.locator("#announcement")).to_have_text("grace is now author.")
    expect(role).to_be_focused()


def test_a_decided_card_keeps_the_focus(as_admin: Page, live_server: Any, project: Any) -> None:
    fill(project)
    as_admin.goto(f"{live_server.url}/p/tools/regressions/")
    as_admin.get_by_role("button", name="Acknowledge").press("Enter")
    expect(as_admin.locator("#announcement")).to_have_text("✓ Saved.")
    expect(as_admin.locator("article.panel")).to_be_focused()
    save = as_admin.get_by_role("button", name="Save")
    if not save.is_visible():
        as_admin.get_by_text("scenarios, triage").click()
    as_admin.get_by_label("Note").fill("Looked at.")
    with as_admin.expect_response("**/regressions/**"):
        save.press("Enter")
    expect(as_admin.locator("article.panel").get_by_text("✓ Saved.")).to_be_visible()
    expect(save).to_be_focused()


def test_a_target_that_is_asked_keeps_the_focus(
    as_admin: Page, live_server: Any, project: Any, settings: Any
) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    target = make_target(project, "local")
    as_admin.goto(f"{live_server.url}/p/tools/targets/")
    as_admin.get_by_role("button", name="Check: local").press("Enter")
    expect(as_admin.get_by_text("checking")).to_be_visible()
    expect(as_admin.locator(f"#target-{target.pk}")).to_be_focused()


def test_filtered_results_are_announced(as_admin: Page, live_server: Any, project: Any) -> None:
    for name in ("Alpha", "Beta"):
        make_run(make_suite(project, name=name))
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    as_admin.locator("input[name=q]").nth(1).press_sequentially("alp")
    expect(as_admin.locator("#announcement")).to_have_text("1 run")
    as_admin.goto(f"{live_server.url}/p/tools/suites/")
    as_admin.locator("input[name=q]").nth(1).press_sequentially("none")
    expect(as_admin.locator("#announcement")).to_have_text("No matches")


def test_a_transcript_tab_keeps_focus_and_survives_a_reload(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    trial = fill(project)["trial"]
    as_admin.goto(f"{live_server.url}/p/tools/trials/{trial.pk}/")
    raw = as_admin.get_by_label("Transcript").get_by_role("link", name="Raw")
    raw.press("Enter")
    expect(raw).to_have_attribute("aria-current", "true")
    expect(raw).to_be_focused()
    as_admin.reload()
    expect(raw).to_have_attribute("aria-current", "true")

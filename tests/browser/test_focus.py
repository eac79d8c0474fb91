"""Where the focus is after a part of a page was swapped, and what screen readers announce."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.models import TargetCheck
from tests.browser.conftest import POLL_MS
from tests.browser.history import fill
from tests.builders import make_member, make_run, make_suite, make_target
from tests.runs.jobs import do_job


def test_a_member_gets_a_role_and_is_removed_announced_and_with_the_focus_kept(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    member = make_member(project, "viewer", "grace").memberships.get()
    as_admin.goto(f"{live_server.url}/p/tools/settings/")
    role = as_admin.get_by_label("Role of grace")
    role.focus()
    role.select_option("author")
    expect(as_admin.locator("#announcement")).to_have_text("grace is now author.")
    expect(role).to_be_focused()
    member.refresh_from_db()
    assert member.role == "author"
    as_admin.get_by_role("button", name="Remove grace").press("Enter")
    expect(as_admin.locator("#announcement")).to_have_text("Removed grace. Their tokens no longer work.")
    expect(as_admin.locator("#members")).to_be_focused()


@pytest.mark.slow
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


def test_a_target_that_is_asked_keeps_the_focus_and_is_polled_until_it_has_answered(
    as_admin: Page, live_server: Any, project: Any, settings: Any
) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    target = make_target(project, "local")
    as_admin.clock.install()
    as_admin.goto(f"{live_server.url}/p/tools/targets/")
    as_admin.get_by_role("button", name="Check: local").press("Enter")
    expect(as_admin.get_by_text("checking")).to_be_visible()
    expect(as_admin.locator(f"#target-{target.pk}")).to_be_focused()
    do_job(TargetCheck.objects.get())
    as_admin.clock.fast_forward(POLL_MS)
    expect(as_admin.get_by_text("ready")).to_be_visible()


def test_typing_filters_announces_and_keeps_the_address(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    for name in ("Alpha", "Beta"):
        make_run(make_suite(project, name=name))
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    expect(as_admin.locator("#results tbody tr")).to_have_count(2)
    as_admin.get_by_label("Text").press_sequentially("alp")
    expect(as_admin.locator("#announcement")).to_have_text("1 run")
    expect(as_admin.locator("#results tbody tr")).to_have_count(1)
    assert "q=alp" in as_admin.url
    as_admin.reload()
    expect(as_admin.locator("#results tbody tr")).to_have_count(1)
    as_admin.goto(f"{live_server.url}/p/tools/suites/")
    as_admin.locator("input[name=q]").nth(1).press_sequentially("none")
    expect(as_admin.locator("#announcement")).to_have_text("No matches")


def test_tabs_of_a_transcript_keep_the_focus_survive_a_reload_and_have_files(
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
    expect(as_admin.get_by_text("2 added, 1 changed, 1 removed")).to_be_visible()
    as_admin.get_by_label("Transcript").get_by_role("link", name="Files").first.click()
    changed = as_admin.get_by_role("region", name="history.log")
    expect(changed.locator("tr.added td")).to_have_text(["", "41", "+", "41 export"])
    # The cell shows white space, so nothing may stand before its text.
    assert changed.locator("tr.added td").nth(3).text_content() == "41 export"
    expect(as_admin.get_by_text("Binary file; only sizes are compared.")).to_be_visible()
    with as_admin.expect_download() as download:
        changed.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "history.log"

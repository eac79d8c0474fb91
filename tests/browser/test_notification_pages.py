"""Adding a channel and testing it in a browser, against a receiver on loopback."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.models import Channel
from tests.browser.conftest import POLL_MS, follow
from tests.runs.alerts.notifications.channels import SECRET
from tests.runs.jobs import deliver_due
from tests.runs.servers import Reply, serving


def test_a_webhook_is_added_and_tested(
    as_admin: Page, live_server: Any, complaints: list[str], settings: Any
) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    page = as_admin
    page.clock.install()
    with serving(Reply({"ok": True})) as server:
        page.goto(f"{live_server.url}/p/tools/settings/")
        follow(page.get_by_role("link", name="Notifications"))
        follow(page.get_by_role("link", name="Add Webhook"))
        page.get_by_label("Name").fill("CI bot")
        page.get_by_label("URL").fill(f"{server.url}/token-of-the-path")
        page.get_by_label("Signing secret").fill(SECRET)
        page.get_by_label("Alert assigned").check()
        follow(page.get_by_role("button", name="Add channel"))
        expect(page.get_by_text("Added CI bot.")).to_be_visible()
        page.get_by_role("button", name="Send test").click()
        log = page.get_by_role("region", name="Delivery log, table")
        expect(log.get_by_text("queued")).to_be_visible()
        assert deliver_due() == 1
        page.clock.fast_forward(POLL_MS)
        expect(log.get_by_text("sent", exact=True)).to_be_visible()
        expect(log).to_contain_text('200 {"ok": true}')
    assert server.requests[0].json["type"] == "test"
    assert Channel.objects.get().events == ["regression", "run_failed", "assigned"]
    assert "token-of-the-path" not in page.content()
    assert [*complaints, *page.evaluate("window.violations")] == []


@pytest.mark.slow
def test_a_channel_is_added_without_a_script(without_script: Page, live_server: Any, settings: Any) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    page = without_script
    page.goto(f"{live_server.url}/p/tools/settings/notifications/new/email/")
    page.get_by_label("Name").fill("Team")
    page.get_by_label("Send to").fill("not an address")
    page.get_by_role("button", name="Add channel").click()
    expect(page.get_by_text("“not” is not an e-mail address.")).to_be_visible()
    page.get_by_label("Send to").fill("team@example.org")
    page.get_by_role("button", name="Add channel").click()
    page.get_by_role("button", name="Send test").click()
    expect(page.get_by_role("region", name="Delivery log, table")).to_contain_text("queued")

"""The queue of regressions in a browser: by keys, several at once, stars, tags, copying, confirming."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.models import Alert
from tests.builders import make_compared, make_suite

KEYS = ("create", "export")


@pytest.fixture(autouse=True)
def no_broker(settings: Any) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


@pytest.fixture
def alerts(project: Any) -> list[Alert]:
    """Return three alerts as the page lists them, newest first."""
    version = make_suite(project, KEYS, name="Basics")
    good, bad = dict.fromkeys(KEYS, "pass"), dict.fromkeys(KEYS, "fail")
    before = make_compared(version, good, trials=6, tool_version="1.0")
    changes = {"options": {"baseline": str(before.pk), "trials": 6}, "tool_version": "2.0"}
    runs = [make_compared(version, bad, trials=6, branch=f"fix-{n}", **changes) for n in range(3)]
    return [Alert.objects.get(run=run) for run in reversed(runs)]


@pytest.fixture
def queue(as_admin: Page, live_server: Any, alerts: list[Alert]) -> Page:
    as_admin.goto(f"{live_server.url}/p/tools/regressions/")
    return as_admin


def card(page: Page, alert: Alert) -> Any:
    return page.locator(f"#alert-{alert.pk}")


def test_keys_are_listed_move_acknowledge_and_lead_to_the_confirmation(
    queue: Page, alerts: list[Alert], complaints: list[str]
) -> None:
    queue.keyboard.press("?")
    expect(queue.locator("#keys")).to_contain_text("next regression")
    expect(queue.locator("#keys ul")).to_be_visible()
    queue.keyboard.press("Escape")
    expect(queue.locator("#keys ul")).to_be_hidden()
    queue.keyboard.press("j")
    expect(card(queue, alerts[0])).to_be_focused()
    queue.keyboard.press("j")
    queue.keyboard.press("j")
    queue.keyboard.press("k")
    expect(card(queue, alerts[1])).to_be_focused()
    queue.keyboard.press("o")
    expect(card(queue, alerts[1]).get_by_label("Note")).to_be_visible()
    queue.keyboard.press("a")
    expect(card(queue, alerts[1]).locator("header")).to_contain_text("acknowledged")
    expect(queue.locator("#tabs")).to_contain_text(re.compile(r"Untriaged\s+2\s+Acknowledged\s+1"))
    queue.keyboard.press("j")
    queue.keyboard.press("c")
    expect(queue.get_by_role("heading", level=1)).to_contain_text(f"run {alerts[2].run_id}")
    assert [*complaints, *queue.evaluate("window.violations")] == []


@pytest.mark.slow
def test_letters_that_are_typed_do_nothing_else(queue: Page, alerts: list[Alert]) -> None:
    queue.get_by_placeholder("Suite, target, scenario").press_sequentially("jac")
    expect(queue.get_by_role("heading", name="No matches")).to_be_visible()
    expect(queue.get_by_placeholder("Suite, target, scenario")).to_be_focused()
    assert Alert.objects.filter(state="untriaged").count() == 3


def test_a_compact_card_opens_is_assigned_acknowledged_and_copied(queue: Page, alerts: list[Alert]) -> None:
    own, note = card(queue, alerts[1]), card(queue, alerts[1]).get_by_label("Note")
    expect(note).to_be_hidden()
    expect(own).to_contain_text("file_exists failed in 12 trials: out.txt does not exist.")
    own.get_by_text("2 scenarios, triage").click()
    expect(note).to_be_visible()
    expect(own.get_by_role("region", name=re.compile("Regressed scenarios"))).to_contain_text("export")
    note.fill("A new flag.")
    own.get_by_label("Assignee").select_option("ada")
    expect(own).to_contain_text(re.compile(r"Assignee\s+ada"))
    expect(own.get_by_text("✓ Saved.")).to_be_visible()
    alerts[1].refresh_from_db()
    assert (str(alerts[1].assignee), alerts[1].note) == ("ada", "A new flag.")
    note.fill("An old flag.")
    own.get_by_role("button", name="Acknowledge").click()
    expect(own.locator("header")).to_contain_text("acknowledged")
    expect(note).to_have_value("An old flag.")
    alerts[1].refresh_from_db()
    assert (alerts[1].state, alerts[1].note) == ("acknowledged", "An old flag.")
    queue.context.grant_permissions(["clipboard-read", "clipboard-write"])
    own.get_by_role("link", name="Copy as Markdown").click()
    expect(own.get_by_role("link", name="✓ Copied")).to_be_visible()
    assert queue.evaluate("navigator.clipboard.readText()").startswith("## Regression: Basics on local")


def test_the_selected_change_together(queue: Page, alerts: list[Alert]) -> None:
    for alert in alerts[:2]:
        card(queue, alert).get_by_role("checkbox").check()
    bar = queue.locator("#selected")
    expect(bar).to_contain_text("2 selected")
    bar.get_by_label("State").select_option("investigating")
    bar.get_by_label("Assignee").select_option("ada")
    bar.get_by_role("button", name="Change selected").click()
    expect(queue.get_by_text("Changed 2 regressions.")).to_be_visible()
    assert Alert.objects.filter(state="investigating", assignee__username="ada").count() == 2

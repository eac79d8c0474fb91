"""The suite editor in a browser: validation as one types, by keyboard, on a phone and without a script."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from scenarios.bundles import Bundle
from scenarios.imports import import_files
from scenarios.models import Suite
from tests.greeting import EXISTS, greeting

GOOD = greeting(EXISTS)
BAD = GOOD.replace("file_exists", "file_exist")
FILES = {"greet.yaml": GOOD.encode(), "templates/repo/README.md": b"Hello."}


@pytest.fixture
def address(live_server: Any, project: Any) -> str:
    """Return the address of the editor of a stored suite."""
    import_files(Bundle("box", FILES), project=project, by=None)
    return f"{live_server.url}/p/tools/suites/box/edit/"


def test_problems_appear_while_one_types_also_on_a_phone(
    as_admin: Page, address: str, complaints: list[str]
) -> None:
    as_admin.set_viewport_size({"width": 390, "height": 844})
    as_admin.emulate_media(color_scheme="dark")
    as_admin.goto(address)
    assert as_admin.evaluate("document.documentElement.scrollWidth") <= 390
    tops = [as_admin.locator(name).bounding_box()["y"] for name in (".gutter", "#text")]  # type: ignore[index]
    assert abs(tops[0] - tops[1]) < 2
    text = as_admin.locator("#text")
    text.fill(BAD)
    expect(as_admin.get_by_text("1 problem")).to_be_visible()
    expect(as_admin.locator(".gutter .is-marked")).to_have_text("11")
    expect(text).to_be_focused()
    as_admin.get_by_role("link", name="Line 11").press("Enter")
    expect(text).to_be_focused()
    assert text.evaluate("area => area.value.slice(0, area.selectionStart).split('\\n').length") == 11
    as_admin.keyboard.press("Control+End")
    as_admin.keyboard.type("\n# more")
    expect(as_admin.locator(".gutter span").last).to_have_text(str(GOOD.count("\n") + 2))
    text.fill(GOOD.replace("Say hello.", "Wave."))
    expect(as_admin.get_by_text("saving creates version 2")).to_be_visible()
    expect(as_admin.locator(".gutter .is-marked")).to_have_count(0)
    as_admin.get_by_role("button", name="Save").click()
    expect(as_admin.get_by_text("Saved version 2 of box.")).to_be_visible()
    assert Suite.objects.get().versions.count() == 2
    assert complaints == []


@pytest.mark.slow
def test_the_editor_needs_no_script(without_script: Page, address: str) -> None:
    without_script.goto(address)
    without_script.locator("#text").fill(BAD)
    without_script.get_by_role("button", name="Check").click()
    expect(without_script.get_by_text("1 problem")).to_be_visible()
    expect(without_script.locator(".gutter .is-marked")).to_have_text("11")
    without_script.locator("#text").fill(GOOD.replace("Say hello.", "Wave."))
    without_script.get_by_role("button", name="Save").click()
    expect(without_script.get_by_text("Saved version 2 of box.")).to_be_visible()

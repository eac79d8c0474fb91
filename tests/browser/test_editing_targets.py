"""The form of a target in a browser: filled in by keyboard, tried on a worker and saved."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.models import Target, TargetTry
from tests.browser.conftest import POLL_MS, follow
from tests.runs.jobs import do_job


def test_a_new_target_is_tried_and_saved(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    as_admin.clock.install()
    as_admin.goto(f"{live_server.url}/p/tools/targets/")
    follow(as_admin.get_by_role("link", name="New target"))
    follow(as_admin.get_by_role("link", name="Your own agent"))
    as_admin.locator("#id_name").fill("mine")
    as_admin.locator("#id_command_template").fill("no-such-placeholder {NOPE}")
    as_admin.get_by_role("button", name="Try it").click()
    expect(as_admin.locator("#command_template-note")).to_contain_text("there is no placeholder {NOPE}")
    as_admin.locator("#id_command_template").fill("echo working on {PROMPT}")
    as_admin.get_by_label("Prompt to try").fill("the answer")
    as_admin.get_by_role("button", name="Try it").focus()
    as_admin.keyboard.press("Enter")
    expect(as_admin.get_by_text("Waiting for a worker")).to_be_visible()
    do_job(TargetTry.objects.get())
    as_admin.clock.fast_forward(POLL_MS)
    expect(as_admin.get_by_label("Raw output")).to_have_text("working on the answer\n")
    expect(as_admin.locator("#id_name")).to_have_value("mine")
    as_admin.get_by_role("button", name="Go on as YAML").click()
    expect(as_admin.get_by_label("Targets file entry")).to_have_value(
        "name: mine\nprovider: cli\ncommand_template: echo working on {PROMPT}\n"
    )
    as_admin.get_by_role("button", name="Save", exact=True).last.click()
    expect(as_admin.get_by_text("Added mine. New runs can use it.")).to_be_visible()
    assert Target.objects.get().definition["command_template"] == "echo working on {PROMPT}"
    assert [each for each in complaints if "422" not in each] == []


@pytest.mark.slow
def test_a_try_needs_no_script(without_script: Page, live_server: Any, project: Any) -> None:
    without_script.goto(f"{live_server.url}/p/tools/targets/new/?provider=mock")
    without_script.locator("#id_name").fill("mine")
    without_script.locator("#id_response").fill("hello there")
    without_script.get_by_role("button", name="Try it").click()
    do_job(TargetTry.objects.get())
    without_script.get_by_role("link", name="Show the result").click()
    expect(without_script.get_by_label("Final text")).to_have_text("hello there")
    expect(without_script.get_by_label("Targets file entry")).to_contain_text("response: hello there")


@pytest.mark.slow
def test_the_form_fits_a_phone(as_admin: Page, live_server: Any, project: Any) -> None:
    as_admin.set_viewport_size({"width": 390, "height": 844})
    for query in ("", "?provider=cli", "?view=yaml"):
        as_admin.goto(f"{live_server.url}/p/tools/targets/new/{query}")
        assert as_admin.evaluate("document.documentElement.scrollWidth") <= 390

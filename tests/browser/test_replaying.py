"""A trial's replay in a browser: the player works under the site's policies."""

from __future__ import annotations

import os
from typing import Any

from playwright.sync_api import Page, expect

from tests.builders import make_run, make_suite, make_trial
from tests.shell_events import shell
from tests.trial_parts import make_transcript


def test_a_replay_opens_on_the_first_failure_plays_and_jumps(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    trial = make_trial(make_run(make_suite(project)))
    make_transcript(trial, [*shell("task list", "nothing"), *shell("task add", "no name", 2, number=1)])
    problems: list[str] = []
    as_admin.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    as_admin.on("pageerror", lambda error: problems.append(str(error)))
    as_admin.goto(f"{live_server.url}/p/tools/trials/{trial.pk}/replay/")
    terminal = as_admin.locator(".terminal")
    current = as_admin.locator("ol.steps [aria-current]")
    # It opens on the failure, with its output.
    expect(current).to_have_text("task add")
    expect(terminal).to_contain_text("[exit 2]")
    as_admin.get_by_role("button", name="Previous command").click()
    expect(current).to_have_text("task list")
    as_admin.get_by_role("button", name="First failure").click()
    expect(current).to_have_text("task add")
    expect(terminal).to_contain_text("$ task list")
    as_admin.get_by_role("button", name="Previous command").click()
    expect(current).to_have_text("task list")
    as_admin.get_by_role("button", name="Play", exact=True).click()
    expect(terminal).to_contain_text("[exit 2]")
    if folder := os.environ.get("SHOTS"):
        as_admin.screenshot(path=f"{folder}/replay.png", full_page=True)
        as_admin.emulate_media(color_scheme="dark")
        as_admin.set_viewport_size({"width": 390, "height": 800})
        as_admin.screenshot(path=f"{folder}/replay-dark.png", full_page=True)
    assert problems == []

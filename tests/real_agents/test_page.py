"""A suite over three real agents and two guidances, started and read in a browser; draws docs/tour.md's pictures of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.execution import run_here
from runs.models import Launch, Run, Trial
from runs.targets.import_targets import import_targets
from scenarios.bundles import read_path
from scenarios.imports import import_files
from tests.browser.conftest import SCREENSHOTS
from tests.real_agents.real import AGENTS, COMMANDS, KEY, playing, turns
from tests.real_agents.test_runs import guidance, suite, target

WRONG, RIGHT = turns(*COMMANDS[1:3], COMMANDS[5]), turns(COMMANDS[0], *COMMANDS[3:])


PATIENCE_MS = 60_000
"""Agents and the slow tests run beside it."""


@pytest.fixture(autouse=True)
def _patience() -> Iterator[None]:
    expect.set_options(timeout=PATIENCE_MS)
    yield
    expect.set_options(timeout=None)


@pytest.mark.timeout(300)
def test_three_agents_with_two_guidances_in_a_browser(
    as_admin: Page, live_server: Any, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    as_admin.set_default_timeout(PATIENCE_MS)
    suite(tmp_path / "taskmgr")
    [imported] = import_files(read_path(tmp_path / "taskmgr"), project=project, by=None)
    for rule in ("Guess the syntax.", "Read --help first."):
        guidance(imported.version.suite, rule)
    # The scripted model does what the guidance says.
    with playing(*RIGHT, sessions=[{"when": "Guess the syntax.", "turns": WRONG}]) as model:
        content = json.dumps({"targets": [target(kind, model.url) for kind in AGENTS]}).encode()
        import_targets(project, content, "targets.yaml", by=None)
        as_admin.goto(f"{live_server.url}/p/tools/runs/new/")
        for kind in AGENTS:
            as_admin.get_by_label(kind, exact=False).first.check()
        expect(as_admin.get_by_role("button", name="Start 3 trials")).to_be_visible()
        offered = as_admin.locator("select[name=guidance]")
        offered.select_option(
            [
                offered.locator("option", has_text=rule).get_attribute("value") or ""
                for rule in ("Guess the syntax.", "Read --help first.")
            ]
        )
        expect(as_admin.get_by_role("button", name="Start 6 trials")).to_be_visible()
        as_admin.get_by_label("Trials each").fill("2")
        as_admin.get_by_label("Trials each").blur()
        as_admin.get_by_role("button", name="Start 12 trials").click()
        expect(as_admin.get_by_role("heading", level=1)).not_to_have_text("New run")
        assert Run.objects.count() == 6
        for launch in Launch.objects.order_by("pk"):
            run_here.run_here(launch)
    found = Trial.objects.order_by().values_list("run__target__name", "run__guidance__name", "outcome")
    rules = {"Guess the syntax.": "fail", "Read --help first.": "pass"}
    assert {*found} == {(kind, rule, outcome) for kind in AGENTS for rule, outcome in rules.items()}
    as_admin.reload()
    expect(as_admin.locator("main")).to_contain_text("Read --help first.")
    draw(as_admin, "agents-guidance")
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    for kind in AGENTS:
        expect(as_admin.locator("main")).to_contain_text(kind)
    draw(as_admin, "agents-runs")


def draw(page: Page, name: str) -> None:
    folder = Path(os.environ.get("EVALHUB_SCREENSHOTS") or SCREENSHOTS)
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png", full_page=True)

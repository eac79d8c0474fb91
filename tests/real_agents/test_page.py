"""A suite over three real agents and two guidances, started and read in a browser; draws docs/tour.md's pictures of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.engine import run_here
from runs.models import Launch, Run, Trial
from runs.targets.import_targets import import_targets
from scenarios.bundles import read_path
from scenarios.formats.parsed import FixtureFile
from scenarios.imports import import_files
from scenarios.models import Guidance, Suite
from scenarios.storing import store_guidance
from tests.browser.conftest import PATIENCE_MS, SCREENSHOTS, follow
from tests.real_agents.real import AGENTS, ANSWER, COMMANDS, KEY, cost_is_right, give_price, playing, turns
from tests.real_agents.test_runs import suite, target

WRONG, RIGHT = turns(*COMMANDS[1:3], COMMANDS[5]), turns(COMMANDS[0], *COMMANDS[3:])
GUESS, READ = "Guess the syntax.", "Read --help first."
FIGURES = ("total_commands", "unique_commands", "error_count", "help_seeking")
EXPECTED = {GUESS: ("fail", [3, 3, 3, 0]), READ: ("pass", [4, 3, 0, 1])}
"""Outcome and figures by guidance."""
pytestmark = pytest.mark.xdist_group("trials")
"""In one process, which makes a database and loads evalhub's pages once."""
AGENTS_MS = 60_000
"""Agents and the slow tests run beside it."""


@pytest.fixture(autouse=True)
def _patience() -> Iterator[None]:
    expect.set_options(timeout=AGENTS_MS)
    yield
    expect.set_options(timeout=PATIENCE_MS)


@pytest.mark.timeout(300)
def test_three_agents_with_two_guidances_in_a_browser(
    as_admin: Page, live_server: Any, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    as_admin.set_default_timeout(AGENTS_MS)
    give_price(project)
    suite(tmp_path / "taskmgr")
    [imported] = import_files(read_path(tmp_path / "taskmgr"), project=project, by=None)
    for rule in EXPECTED:
        guidance(imported.version.suite, rule)
    # The scripted model does what the guidance says.
    with playing(*RIGHT, sessions=[{"when": GUESS, "turns": WRONG}]) as model:
        content = json.dumps({"targets": [target(kind, model.url) for kind in AGENTS]}).encode()
        import_targets(project, content, "targets.yaml", by=None)
        as_admin.goto(f"{live_server.url}/p/tools/runs/new/")
        for kind in AGENTS:
            as_admin.get_by_label(kind, exact=False).first.check()
        expect(as_admin.get_by_role("button", name="Start 3 trials")).to_be_visible()
        for rule in EXPECTED:
            as_admin.get_by_role("checkbox", name=rule).check()
        follow(as_admin.get_by_role("button", name="Start 6 trials"))
        expect(as_admin.get_by_role("heading", level=1)).not_to_have_text("New run")
        assert Run.objects.count() == 6
        for launch in Launch.objects.order_by("pk"):
            run_here.run_here(launch)
    trials = [*Trial.objects.select_related("run__target", "run__guidance")]
    assert {(each.run.target.name, each.run.guidance.name) for each in trials} == {*product(AGENTS, EXPECTED)}
    for trial in trials:
        outcome, figures = EXPECTED[trial.run.guidance.name]
        assert (trial.outcome, trial.answer, trial.error) == (outcome, ANSWER, "")
        assert cost_is_right(trial)
        assert [trial.detail["interaction"][name] for name in FIGURES] == figures, trial.run.target.name
    asked = [json.dumps(request.body) for request in model.seen]
    # Each agent asks after each command, and once more for its answer.
    assert [sum(rule in text for text in asked) for rule in EXPECTED] == [3 * len(WRONG), 3 * len(RIGHT)]
    as_admin.reload()
    expect(as_admin.locator("main")).to_contain_text(READ)
    draw(as_admin, "agents-guidance")
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    for kind in AGENTS:
        expect(as_admin.locator("main")).to_contain_text(kind)
    draw(as_admin, "agents-runs")
    for trial in trials:
        as_admin.goto(f"{live_server.url}/p/tools/trials/{trial.pk}/")
        expect(as_admin.locator("main")).to_contain_text(trial.detail["agent_version"])


def guidance(of: Suite, rule: str) -> Guidance:
    """Guidance under the names that the three agents read."""
    files = tuple(FixtureFile(name, rule.encode()) for name in ("AGENTS.md", "CLAUDE.md"))
    return store_guidance(of, files, by=None, name=rule)[0]


def draw(page: Page, name: str) -> None:
    folder = Path(os.environ.get("EVALHUB_SCREENSHOTS") or SCREENSHOTS)
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png", full_page=True)

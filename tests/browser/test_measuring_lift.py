"""From an empty project to what a skill adds, on a whole evalhub with the scripted agent."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, expect

from tests.browser.conftest import follow
from tests.browser.whole_evalhub import serve_evalhub
from tests.worker.test_up import ROOT

EXAMPLES = Path(ROOT) / "scenarios/examples"
MOST_SECONDS = 180


def targets_file(folder: Path) -> Path:
    """Return a targets file with the scripted agent and its judge, wherever it lies."""
    targets = yaml.safe_load((EXAMPLES / "targets.yaml").read_text())["targets"]
    chosen = [each for each in targets if each["name"] in ("scripted-agent", "rule-judge")]
    file = folder / "targets.yaml"
    file.write_text(
        yaml.safe_dump({"targets": [{**each, "cwd": str(EXAMPLES / "agents")} for each in chosen]})
    )
    return file


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_skill_is_uploaded_and_its_lift_is_said_in_three_minutes(tmp_path: Path, browser: Browser) -> None:
    with serve_evalhub(tmp_path / "data", EVALHUB_TARGET_ROOTS=str(EXAMPLES)) as served:
        page = browser.new_context().new_page()
        page.set_default_timeout(30_000)
        began = time.monotonic()
        served.open(page)
        follow(page.get_by_role("link", name="Targets").first)
        page.locator("#file").set_input_files(targets_file(tmp_path))
        page.get_by_role("button", name=re.compile("^Import")).click()
        expect(page.get_by_role("link", name="scripted-agent")).to_be_visible()
        follow(page.get_by_role("link", name="Suites").first)
        page.get_by_label("Choose a folder…").set_input_files(EXAMPLES / "stock-keeping")
        page.get_by_role("button", name="Upload").click()
        follow(page.get_by_role("region", name="Suites, table").get_by_role("link", name="stock-keeping"))
        suite = page.url
        follow(page.get_by_role("link", name="Measure lift…"))
        page.get_by_role("checkbox", name="scripted-agent").check()
        page.get_by_role("button", name=re.compile(r"^Start \d+ trials")).click()
        lift = page.get_by_role("region", name="Lift")
        expect(lift).to_contain_text("the skill adds 67 points of pass rate", timeout=MOST_SECONDS * 1000)
        assert time.monotonic() - began < MOST_SECONDS
        picture = page.get_by_role("region", name="Measures at a glance")
        expect(picture.get_by_role("img", name=re.compile(r"^Pass rate \+67 points"))).to_be_visible()
        page.goto(suite)
        page.get_by_role("region", name="What the skill adds").get_by_role("link").click()
        expect(lift).to_contain_text("It helps on count-shelf, order-low.")
        page.context.close()

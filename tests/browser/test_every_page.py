"""Every page, wide and narrow, light and dark: nothing to complain of for axe, the console or the policy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page

from tests.browser.conftest import SCREENSHOTS
from tests.browser.history import HOSTILE, fill

WIDTHS = {"wide": 1280, "narrow": 390}
PAGES = {
    "home": "/p/tools/",
    "runs": "/p/tools/runs/",
    "runs-nothing": "/p/tools/runs/?q=nowhere",
    "run": "/p/tools/runs/{finished}/",
    "run-failing": "/p/tools/runs/{finished}/?failing=export",
    "run-running": "/p/tools/runs/{running}/",
    "run-unprepared": "/p/tools/runs/{unprepared}/",
    "run-new": "/p/tools/runs/new/?targets=claude-code%20·%20sonnet",
    "run-new-several": "/p/tools/runs/new/?targets=claude-code%20·%20sonnet&targets=gemini-flash&trials=7",
    "run-new-wrong": "/p/tools/runs/new/?targets=nowhere&trials=0&models=a",
    "trial": "/p/tools/trials/{trial}/",
    "trial-messages": "/p/tools/trials/{trial}/?part=messages",
    "trial-error": "/p/tools/trials/{errored}/",
    "trial-files": "/p/tools/trials/{trial}/?part=files",
    "trial-raw": "/p/tools/trials/{trial}/?part=raw",
    "suites": "/p/tools/suites/",
    "suite": "/p/tools/suites/taskmgr-basics/",
    "suite-difference": "/p/tools/suites/taskmgr-basics/difference/",
    "suites-nothing": "/p/tools/suites/?q=nowhere",
    "trends": "/p/tools/trends/?measure=trial/pass",
    "reviews": "/p/tools/reviews/",
    "targets": "/p/tools/targets/",
    "target-edit": "/p/tools/targets/{target}/",
    "regressions": "/p/tools/regressions/",
    "regressions-none": "/p/tools/regressions/?state=fixed",
    "compare": "/p/tools/compare/?runs={base},{finished}",
    "compare-none": "/p/tools/compare/",
    "run-import": "/p/tools/runs/import/",
    "search": "/p/tools/search/?q=task",
    "settings": "/p/tools/settings/",
    "settings-prices": "/p/tools/settings/prices/",
    "settings-audit": "/p/tools/settings/audit/",
    "projects": "/projects/",
    "password": "/password/",
    "patterns": "/patterns/",
}


SCENARIO = """name: list-files
description: Lists.
task:
  prompt: {}
evaluation:
  gates:
    - type: file_exists
      path: out.txt
"""


@pytest.fixture
def numbers(project: Any) -> dict[str, int]:
    filled = fill(project)
    return {
        "finished": filled["runs"][-1].pk,
        "running": filled["running"].pk,
        "unprepared": filled["unprepared"].pk,
        "trial": filled["trial"].pk,
        "errored": filled["errored"].pk,
        "base": filled["runs"][0].pk,
        "target": filled["runs"][0].target_id,
    }


def serious(page: Page) -> list[str]:
    """Return axe-core's serious and critical violations in words."""
    found = page.evaluate("axe.run({resultTypes: ['violations']}).then((found) => found.violations)")
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:160]} ({each['nodes'][0]['failureSummary'][:200]})"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@pytest.fixture(autouse=True)
def _axe(context: BrowserContext) -> None:
    """Give every page axe-core as it loads: handing it to each anew takes as long as running it."""
    context.add_init_script(Axe().axe_script)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_gives_reason_to_complain(
    as_admin: Page, live_server: Any, numbers: dict[str, int], complaints: list[str], width: str, scheme: str
) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    as_admin.set_viewport_size({"width": WIDTHS[width], "height": 900})
    as_admin.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    wrong: dict[str, Any] = {}
    for name, path in PAGES.items():
        as_admin.goto(live_server.url + path.format(**numbers))
        as_admin.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png", full_page=True)
        found = [*serious(as_admin), *complaints, *as_admin.evaluate("window.violations")]
        if as_admin.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append("the page scrolls sideways")
        complaints.clear()
        if found:
            wrong[name] = found
    assert wrong == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_what_an_upload_would_change_gives_no_reason_to_complain(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str], width: str, scheme: str
) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    as_admin.set_viewport_size({"width": WIDTHS[width], "height": 900})
    as_admin.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    as_admin.goto(f"{live_server.url}/p/tools/suites/")
    for prompt, check in (("Do it.", False), (f"Do it, all of it {'x' * 300}: {HOSTILE}", True)):
        content = SCENARIO.format(json.dumps(prompt)).encode()
        chosen = {"name": "list.yaml", "mimeType": "text/yaml", "buffer": content}
        as_admin.locator("#file").set_input_files(chosen)
        as_admin.get_by_label("Check only").set_checked(check)
        as_admin.get_by_role("button", name="Upload").click()
        as_admin.get_by_text("it would be version 2" if check else "is version 1").wait_for()
    as_admin.get_by_text("show the difference").click()
    as_admin.screenshot(path=SCREENSHOTS / f"preview-{width}-{scheme}.png", full_page=True)
    assert [*serious(as_admin), *complaints, *as_admin.evaluate("window.violations")] == []
    assert not as_admin.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_the_sign_in_page_gives_no_reason_to_complain(
    page: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.goto(live_server.url + "/sign-in/")
    page.screenshot(path=SCREENSHOTS / "sign-in.png")
    assert [*serious(page), *complaints, *page.evaluate("window.violations")] == []


def test_what_is_wrong_is_found(page: Page) -> None:
    page.goto("data:text/html,<html lang=en><title>A</title><img src=''>")
    assert [each.split(":")[0] for each in serious(page)] == ["image-alt"]

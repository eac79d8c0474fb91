"""Every page, wide and narrow, light and dark: nothing to complain of for axe, the console or the policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page

from runs.models import Alert
from tests.browser.conftest import SCREENSHOTS
from tests.browser.history import HOSTILE, fill

WIDTHS = {"narrow": 390, "wide": 1280}
"""Pixels."""
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
    "run-new-narrowed": "/p/tools/runs/new/?targets=gemini-flash&pick=failed&models=gpt-x&run_tags="
    + "x" * 150,
    "run-new-wrong": "/p/tools/runs/new/?targets=nowhere&trials=0&models=a",
    "trial": "/p/tools/trials/{trial}/",
    "trial-messages": "/p/tools/trials/{trial}/?part=messages",
    "trial-error": "/p/tools/trials/{errored}/",
    "trial-against": "/p/tools/trials/{trial}/against/{before}/",
    "trial-files": "/p/tools/trials/{trial}/?part=files",
    "trial-raw": "/p/tools/trials/{trial}/?part=raw",
    "suites": "/p/tools/suites/",
    "suite": "/p/tools/suites/taskmgr-basics/",
    "suite-edit": "/p/tools/new-suite/",
    "suite-difference": "/p/tools/suites/taskmgr-basics/difference/",
    "suites-nothing": "/p/tools/suites/?q=nowhere",
    "guidance": "/p/tools/guidance/",
    "guidance-version": "/p/tools/guidance/{guidance}/",
    "guidance-raw": "/p/tools/guidance/{guidance}/?part=raw",
    "guidance-against": "/p/tools/guidance/{guidance}/against/{other}/",
    "guidance-try": "/p/tools/runs/new/?suite=taskmgr-basics&guidance={guidance}&edit={guidance}",
    "trends": "/p/tools/trends/?measure=trial/pass",
    "reviews": "/p/tools/reviews/",
    "rationales": "/p/tools/reviews/rationales/",
    "disagreements": "/p/tools/reviews/disagreements/",
    "calibration": "/p/tools/reviews/calibration/",
    "run-reassess": "/p/tools/runs/{finished}/again/",
    "targets": "/p/tools/targets/",
    "target-new": "/p/tools/targets/new/?provider=cli",
    "target-new-yaml": "/p/tools/targets/new/?view=yaml",
    "target-edit": "/p/tools/targets/{target}/",
    "regressions": "/p/tools/regressions/",
    "regression-confirm": "/p/tools/regressions/{alert}/confirm/",
    "regressions-none": "/p/tools/regressions/?state=fixed",
    "regressions-nothing": "/p/tools/regressions/?q=nowhere&assignee=grace",
    "regressions-filtered": "/p/tools/regressions/?q=task",
    "compare": "/p/tools/compare/?runs={base},{finished}",
    "compare-opened": "/p/tools/compare/?runs={base},{finished}&show=all&open=export-json",
    "compare-expert": "/p/tools/compare/?runs={base},{finished}&columns=expert&measure=trial/pass&part=guidance",
    "compare-matrix": "/p/tools/compare/?runs={base},{finished},{running}",
    "compare-cases": "/p/tools/compare/?runs={base},{finished},{running}&show=differing",
    "compare-more": "/p/tools/compare/more/?runs={base},{finished}",
    "compare-none": "/p/tools/compare/",
    "run-tools": "/p/tools/runs/{finished}/tools/",
    "run-import": "/p/tools/runs/import/",
    "session-import": "/p/tools/runs/sessions/",
    "search": "/p/tools/search/?q=task",
    "usage": "/p/tools/usage/?compare=baseline",
    "settings": "/p/tools/settings/",
    "settings-prices": "/p/tools/settings/prices/",
    "settings-notifications": "/p/tools/settings/notifications/",
    "settings-channel": "/p/tools/settings/notifications/{channel}/",
    "settings-channel-new": "/p/tools/settings/notifications/new/webhook/",
    "settings-channel-mail": "/p/tools/settings/notifications/new/email/",
    "settings-audit": "/p/tools/settings/audit/",
    "projects": "/projects/",
    "password": "/password/",
    "patterns": "/patterns/",
    "schemas": "/schemas/",
}
MAIN_PAGES = ("home", "run", "trial", "compare")
"""Of each kind of page one; the others with `make test-all`."""


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
        "before": filled["runs"][0].trial_set.get(scenario=filled["trial"].scenario, index=0).pk,
        "target": filled["runs"][0].target_id,
        "channel": filled["channel"].pk,
        "alert": Alert.objects.get().pk,
        "guidance": filled["runs"][0].guidance_id,
        "other": filled["runs"][2].guidance_id,
    }


SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LABELS_RULE = "label-content-name-mismatch"
"""Experimental in axe: who speaks a button's words has to reach it."""
COLOUR_RULES = ["color-contrast", "link-in-text-block"]


ORDER_RULE = "heading-order"
"""Moderate in axe: who reads by headings looks for what a skipped level leaves out."""


def serious(page: Page, *, colours_only: bool = False) -> list[str]:
    """Return axe-core's serious and critical violations in words, and skipped levels of headings."""
    more = {"runOnly": COLOUR_RULES} if colours_only else {"rules": {LABELS_RULE: {"enabled": True}}}
    options = {"resultTypes": ["violations"], **more}
    found = page.evaluate("options => axe.run(options).then((found) => found.violations)", options)
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:160]} ({each['nodes'][0]['failureSummary'][:200]})"
        for each in found
        if each["impact"] in ("serious", "critical") or each["id"] == ORDER_RULE
    ]


LOST = """() => [...document.querySelectorAll("[aria-describedby], [aria-labelledby], [aria-controls], label[for]")]
  .flatMap((each) => ["aria-describedby", "aria-labelledby", "aria-controls", "for"]
    .flatMap((name) => (each.getAttribute(name) || "").split(/\\s+/).filter((id) => id && !document.getElementById(id))
      .map((id) => `${name} names #${id}, which is not there`)))"""


SECOND_NOTATIONS = r"""() => {
  const date = /\b\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b|\b\d{4}-\d\d-\d\d\b|\bjust now\b| ago\b/;
  const elsewhere = "time, script, style, noscript, pre, code, .mono, option, textarea, svg, .diff, .readout, .point-card, .gates";
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = texts.nextNode()); ) {
    const text = node.textContent.trim();
    if (node.parentElement.closest(elsewhere)) continue;
    if (date.test(text)) found.push(`a date outside of a time element: ${text.slice(0, 90)}`);
    if (/^(-|—|n\/a|none|unknown|null|undefined|nan)$/i.test(text)) found.push(`another word for empty: ${text} in ${node.parentElement.outerHTML.slice(0, 120)}`);
  }
  return found;
}"""


def wrong_with(
    page: Page, complaints: list[str], name: str, scheme: str = "light", *, folder: Path = SCREENSHOTS
) -> list[str]:
    """Return what there is to complain of; then a picture of the page is put into the folder."""
    # Style sheets tell light and dark apart by colours only, so the other rules would find the same again.
    found = [*serious(page, colours_only=scheme == "dark"), *complaints, *page.evaluate("window.violations")]
    found += [*page.evaluate(LOST), *page.evaluate(SECOND_NOTATIONS)]
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("the page scrolls sideways")
    complaints.clear()
    if found:
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=folder / f"{name}-{scheme}.png", full_page=True)
    return found


@pytest.fixture(autouse=True)
def _axe(context: BrowserContext) -> None:
    """Give every page axe-core as it loads: handing it to each anew takes as long as running it."""
    context.add_init_script(Axe().axe_script)


@pytest.mark.slow
@pytest.mark.starts_first
@pytest.mark.timeout(900)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_gives_reason_to_complain(
    as_admin: Page, live_server: Any, numbers: dict[str, int], complaints: list[str], width: str
) -> None:
    as_admin.set_viewport_size({"width": WIDTHS[width], "height": 900})
    as_admin.emulate_media(reduced_motion="reduce")
    wrong: dict[str, Any] = {}
    for name, path in PAGES.items():
        as_admin.goto(live_server.url + path.format(**numbers), timeout=30_000)
        for scheme in SCHEMES:
            as_admin.emulate_media(color_scheme=scheme)
            if found := wrong_with(as_admin, complaints, f"{name}-{width}", scheme):
                wrong[f"{name}, {scheme}"] = found
    assert wrong == {}


def test_no_main_page_gives_reason_to_complain(
    as_admin: Page, live_server: Any, numbers: dict[str, int], complaints: list[str]
) -> None:
    as_admin.set_viewport_size({"width": WIDTHS["narrow"], "height": 900})
    as_admin.emulate_media(reduced_motion="reduce")
    wrong: dict[str, list[str]] = {}
    for name in MAIN_PAGES:
        as_admin.goto(live_server.url + PAGES[name].format(**numbers))
        if found := wrong_with(as_admin, complaints, f"{name}-narrow"):
            wrong[name] = found
    assert wrong == {}


def wrong_in_every_size(page: Page, complaints: list[str], name: str) -> dict[str, list[str]]:
    """Return what there is to complain of as a page stays, by width and by light and dark."""
    wrong = {}
    for width, pixels in WIDTHS.items():
        page.set_viewport_size({"width": pixels, "height": 900})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            if found := wrong_with(page, complaints, f"{name}-{width}", scheme):
                wrong[f"{width}, {scheme}"] = found
    return wrong


def test_what_an_upload_would_change_gives_no_reason_to_complain(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/suites/")
    for prompt, check in (("Do it.", False), (f"Do it, all of it {'x' * 300}: {HOSTILE}", True)):
        content = SCENARIO.format(json.dumps(prompt)).encode()
        chosen = {"name": "list.yaml", "mimeType": "text/yaml", "buffer": content}
        as_admin.locator("#file").set_input_files(chosen)
        as_admin.get_by_label("Check only").set_checked(check)
        as_admin.get_by_role("button", name="Upload").click()
        as_admin.get_by_text("saving creates version 2" if check else "Uploaded list, version 1").wait_for()
    as_admin.get_by_text("show changes").click()
    assert wrong_in_every_size(as_admin, complaints, "preview") == {}


@pytest.mark.slow
def test_a_preview_of_results_gives_no_reason_to_complain(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/runs/import/")
    cases = [{"id": f"case-{n} {HOSTILE}"[:200], "passed": n > 1} for n in range(12)]
    value = {"toolName": f"tool-{'x' * 150}", "cases": cases, "stalenessWarnings": [HOSTILE]}
    content = json.dumps(value).encode()
    as_admin.locator("#file").set_input_files(
        {"name": "r.json", "mimeType": "application/json", "buffer": content}
    )
    as_admin.get_by_role("button", name="Preview").click()
    as_admin.get_by_role("button", name="Import 1 run").wait_for()
    assert wrong_in_every_size(as_admin, complaints, "results") == {}


def test_the_sign_in_page_gives_no_reason_to_complain(
    page: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    page.goto(live_server.url + "/sign-in/")
    assert wrong_with(page, complaints, "sign-in") == []


@pytest.mark.slow
def test_all_rules_about_colours_are_asked_in_the_dark(page: Page) -> None:
    page.goto("data:text/html,<html lang=en><title>A</title>")
    found = page.evaluate("axe.getRules(['cat.color'])")
    assert sorted(each["ruleId"] for each in found if "wcag2aaa" not in each["tags"]) == COLOUR_RULES


@pytest.mark.slow
def test_a_second_notation_is_found(page: Page) -> None:
    shown = "<p>1 Nov 2026<p>2026-11-01<p>–<table><td>n/a<td>—<td><time>2 Nov 2026</time></table>"
    page.goto(f"data:text/html;charset=utf-8,{quote(shown)}")
    assert page.evaluate(SECOND_NOTATIONS) == [
        "a date outside of a time element: 1 Nov 2026",
        "a date outside of a time element: 2026-11-01",
        "another word for empty: n/a in <td>n/a</td>",
        "another word for empty: — in <td>—</td>",
    ]


FAULTY = """<html lang=en><meta name=color-scheme content="light dark"><title>A</title><img src=''>
<p style="color: black; background: light-dark(white, #333)">Dark on dark.</p><div style="width: 9999px">Wide.</div>
<h1>One</h1><h3>Three</h3><p aria-labelledby=gone>Unnamed.</p>"""


@pytest.mark.slow
def test_what_is_wrong_is_found_and_pictures_are_kept(
    page: Page, complaints: list[str], tmp_path: Path
) -> None:
    found = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(f"data:text/html,{quote(FAULTY)}")
        wrong = wrong_with(page, complaints, "faulty", scheme, folder=tmp_path)
        found[scheme] = [each.split(":")[0] for each in wrong]
    always = ["aria-labelledby names #gone, which is not there", "the page scrolls sideways"]
    assert found == {"light": ["heading-order", "image-alt", *always], "dark": ["color-contrast", *always]}
    assert {path.name for path in tmp_path.iterdir()} == {"faulty-light.png", "faulty-dark.png"}

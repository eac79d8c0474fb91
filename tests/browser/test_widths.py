"""What is left of tables on wide and on narrow screens."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.browser.history import fill
from tests.builders import close, make_guidance, make_run, make_suite, make_target, make_trial


@pytest.mark.slow
def test_the_list_of_runs_fits_a_page_of_1280_pixels(as_admin: Page, live_server: Any, project: Any) -> None:
    version = make_suite(project, name="Ledger bookkeeping")
    target = make_target(project, "claude-code · sonnet")
    run = make_run(
        version,
        target=target,
        model="claude-sonnet",
        tool_version="ledgerline 3.0.0",
        guidance=make_guidance(version.suite, "guidance 8"),
        tags=["nightly", "weekly"],
        started=timezone.now() - timedelta(days=3),
        finished=timezone.now(),
        cost_usd=0.982,
    )
    for outcome in ["pass"] * 18 + ["fail", "error"]:
        make_trial(run, outcome=outcome)
    close(run)
    as_admin.set_viewport_size({"width": 1280, "height": 900})
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    table = as_admin.get_by_role("region", name="Runs, table")
    assert table.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert table.locator("tbody tr").evaluate("row => row.offsetHeight") < 80


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_a_suite_with_a_long_tag_fits_with_its_seals(
    as_admin: Page, live_server: Any, project: Any, width: int
) -> None:
    version = make_suite(project, ("create", "export"), name="Basics", tags=["t" * 150])
    run = make_run(version)
    for index in range(20):
        make_trial(run, "create", index=index)
    close(run)
    as_admin.set_viewport_size({"width": width, "height": 900})
    as_admin.goto(f"{live_server.url}/p/tools/suites/basics/")
    assert as_admin.evaluate("document.documentElement.scrollWidth") == width
    seal = as_admin.get_by_role("columnheader", name="Seal")
    right, inner = seal.evaluate("cell => [cell.getBoundingClientRect().right, innerWidth]")
    assert width == 390 or right <= inner - 300, "before the panels beside it"
    table = as_admin.get_by_role("region", name="Scenarios, table")
    assert width == 390 or table.evaluate("box => box.scrollWidth <= box.clientWidth")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["runs/?tool_version=", "regressions/?q="])
def test_a_long_filter_in_force_does_not_widen_the_page(
    as_admin: Page, live_server: Any, project: Any, path: str
) -> None:
    fill(project)
    as_admin.set_viewport_size({"width": 390, "height": 900})
    as_admin.goto(f"{live_server.url}/p/tools/{path}{'x' * 200}")
    expect(as_admin.locator(".chip b").first).to_contain_text("xxx")
    assert as_admin.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.slow
def test_the_home_names_targets_where_their_column_is_gone(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    make_trial(make_run(make_suite(project), target=make_target(project, "gemini")), outcome="pass")
    as_admin.goto(f"{live_server.url}/p/tools/")
    as_admin.get_by_text("lines as a table").click()
    row = as_admin.get_by_role("region", name="Lines, table").locator("tbody tr")
    for width in (1280, 390):
        as_admin.set_viewport_size({"width": width, "height": 900})
        expect(row.get_by_text("gemini").filter(visible=True)).to_have_count(1)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_labels_of_a_trend_do_not_lie_over_each_other(
    as_admin: Page, live_server: Any, project: Any, width: int
) -> None:
    version = make_suite(project)
    for _ in range(15):
        run = make_run(version)
        make_trial(run)
        close(run)
    as_admin.set_viewport_size({"width": width, "height": 900})
    as_admin.goto(f"{live_server.url}/p/tools/trends/")
    ticks = as_admin.get_by_role("group", name="Pass rate").get_by_text(re.compile(r"^\d+ [A-Z][a-z]{2}$"))
    expect(ticks).to_have_count(5)
    boxes = ticks.evaluate_all("all => all.map(each => each.getBoundingClientRect())")
    assert all(left["right"] < right["left"] for left, right in pairwise(boxes))


def test_a_phone_has_one_row_of_navigation_and_reaches_the_plan_in_one_press(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    make_suite(project)
    make_target(project)
    as_admin.set_viewport_size({"width": 390, "height": 844})
    as_admin.goto(f"{live_server.url}/p/tools/")
    menu = as_admin.locator("summary", has_text="Menu")
    shown = [each.bounding_box() for each in as_admin.locator("header summary").all()]
    shown.append(as_admin.get_by_role("link", name="Search").bounding_box())
    assert len(shown) == 4
    middles = [each["y"] + each["height"] / 2 for each in shown]
    assert max(middles) - min(middles) < 4
    as_admin.get_by_role("link", name="Search").click()
    expect(as_admin.get_by_role("main").get_by_role("searchbox")).to_be_visible()
    as_admin.go_back()
    menu.click()
    as_admin.get_by_role("link", name="Trends").click()
    expect(as_admin.get_by_role("heading", name="Trends", level=1)).to_be_visible()
    assert as_admin.evaluate("document.documentElement.scrollWidth") == 390
    as_admin.goto(f"{live_server.url}/p/tools/runs/new/")
    as_admin.get_by_role("link", name="Plan and start").click()
    expect(as_admin.get_by_role("heading", name="Plan")).to_be_in_viewport()
    as_admin.set_viewport_size({"width": 1280, "height": 900})
    expect(as_admin.get_by_role("link", name="Plan and start")).to_be_hidden()


A4 = 718
"""Pixels between the margins that Chromium leaves on a page of A4."""


def test_nothing_is_cut_or_dark_on_paper(as_admin: Page, live_server: Any, project: Any) -> None:
    filled = fill(project)
    base, new = (filled["runs"][at].pk for at in (0, -1))
    as_admin.set_viewport_size({"width": A4, "height": 900})
    as_admin.emulate_media(color_scheme="dark", media="print")
    for path in ("", "runs/", f"runs/{new}/", f"compare/?runs={base},{new}", f"trials/{filled['trial'].pk}/"):
        as_admin.goto(f"{live_server.url}/p/tools/{path}")
        expect(as_admin.get_by_role("banner")).to_be_hidden()
        widest = "[...document.querySelectorAll('table')].map((each) => each.getBoundingClientRect().right)"
        assert max(as_admin.evaluate(widest), default=0) <= A4, path
        shade = as_admin.evaluate("getComputedStyle(document.body).backgroundColor")
        assert shade.startswith("rgb(24") or shade.startswith("rgb(25"), f"{path} is {shade}"

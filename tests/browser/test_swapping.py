"""Parts of a page that are swapped, polled or drawn again, while the page stays."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import follow, go_back
from tests.browser.history import fill
from tests.builders import make_suite, make_target, make_version


@pytest.mark.slow
def test_a_part_that_is_fetched_shows_a_skeleton_until_it_is_there(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    make_target(project)
    make_suite(project, name="Basics")
    as_admin.goto(f"{live_server.url}/p/tools/runs/new/?targets=local")
    held: list[Any] = []
    as_admin.route("**/runs/new/", lambda route: held.append(route))
    as_admin.get_by_label("Trials each").fill("2")
    as_admin.get_by_label("Trials each").blur()
    plan = as_admin.locator("#plan")
    expect(plan).to_have_attribute("aria-busy", "true")
    cost = plan.locator("dd").first
    expect(cost).to_have_css("color", "rgba(0, 0, 0, 0)")
    held[0].continue_()
    expect(as_admin.get_by_role("button", name="Start 4 trials")).to_be_visible()
    expect(plan).not_to_have_attribute("aria-busy", "true")


@pytest.mark.slow
def test_choosing_a_version_swaps_its_changes_and_address(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    suite = make_suite(project, ("create",), name="Basics").suite
    for prompt in ("Second.", "Third."):
        make_version(suite, create={"prompt": prompt})
    as_admin.goto(f"{live_server.url}/p/tools/suites/basics/")
    expect(as_admin.get_by_role("heading", name="v2 → v3")).to_be_visible()
    as_admin.get_by_role("link", name="v2, changes").click()
    expect(as_admin.get_by_role("heading", name="v1 → v2")).to_be_visible()
    assert as_admin.url.endswith("?version=2")
    as_admin.get_by_role("link", name="create", exact=True).last.click()
    expect(as_admin.get_by_text("prompt: Second.")).to_be_visible()


@pytest.mark.slow
def test_the_list_of_suites_is_narrowed_in_place(as_admin: Page, live_server: Any, project: Any) -> None:
    make_suite(project, name="Alpha", tags=["smoke"])
    make_suite(project, name="Beta")
    as_admin.goto(f"{live_server.url}/p/tools/suites/")
    as_admin.get_by_label("Tag").select_option("smoke")
    expect(as_admin.locator("#suites tbody tr")).to_have_count(1)
    assert "tag=smoke" in as_admin.url
    as_admin.get_by_role("link", name="Clear filters").click()
    expect(as_admin.locator("#suites tbody tr")).to_have_count(2)


@pytest.mark.slow
def test_a_trend_is_drawn_in_the_colours_of_the_page(as_admin: Page, live_server: Any, project: Any) -> None:
    fill(project)
    as_admin.goto(f"{live_server.url}/p/tools/trends/")
    points = as_admin.get_by_role("group", name="Pass rate").locator("a .dot")
    expect(points).to_have_count(6)
    light = points.first.evaluate("element => getComputedStyle(element).fill")
    as_admin.emulate_media(color_scheme="dark")
    expect(points.first).not_to_have_css("fill", light)


@pytest.mark.slow
def test_another_suite_offers_its_own_measures(as_admin: Page, live_server: Any, project: Any) -> None:
    fill(project)
    make_suite(project, name="Other")
    as_admin.goto(f"{live_server.url}/p/tools/trends/?suite=taskmgr-basics")
    suite, measure = (as_admin.get_by_role("combobox", name=name) for name in ("Suite", "Measure"))
    expect(measure.locator("option")).not_to_have_count(1)
    suite.select_option("other")
    expect(as_admin.get_by_role("heading", name="No data yet")).to_be_visible()
    expect(measure.locator("option")).to_have_count(1)
    suite.select_option("taskmgr-basics")
    expect(as_admin.get_by_role("figure").first).to_contain_text("Pass rate")
    measure.focus()
    measure.select_option("Judge: Judge score")
    expect(as_admin.get_by_role("figure").first).to_contain_text("Judge score")
    expect(as_admin.locator("[data-figure] .point").first).to_be_attached()
    expect(measure).to_be_focused()


def test_regressions_are_narrowed_while_one_types_and_triage_swaps_card_and_counts(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    fill(project)
    as_admin.goto(f"{live_server.url}/p/tools/regressions/")
    text, untriaged = as_admin.get_by_role("searchbox", name="Text"), as_admin.locator("#tabs a").first
    expect(untriaged.locator(".count")).to_be_visible()
    text.press_sequentially("nowhere")
    expect(as_admin.get_by_role("heading", name="No matches")).to_be_visible()
    expect(untriaged.locator(".count")).to_have_count(0)
    expect(text).to_be_focused()
    assert "?state=untriaged&q=nowhere&" in as_admin.url
    follow(as_admin.get_by_role("link", name="Remove text"))
    expect(as_admin.locator("article")).to_be_visible()
    expect(untriaged.locator(".count")).to_be_visible()
    expect(as_admin.locator("nav .untriaged .count")).to_be_visible()
    card = as_admin.locator("article").first
    card.locator("summary", has_text="triage").click()
    card.get_by_label("Note").fill("Wrong flag in the guidance.")
    card.get_by_role("button", name="Acknowledge").click()
    expect(as_admin.locator("article .badge").first).to_have_text("acknowledged")
    expect(as_admin.locator("article").get_by_text("✓ Saved.")).to_be_visible()
    expect(as_admin.locator("nav .untriaged .count")).to_have_count(0)
    assert complaints == []


@pytest.mark.slow
def test_a_cell_of_the_subcommands_opens_the_calls_that_failed(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    run = fill(project)["runs"][-1]
    as_admin.goto(f"{live_server.url}/p/tools/runs/{run.pk}/")
    as_admin.get_by_text("Commands by subcommand").click()
    table = as_admin.get_by_role("region", name="Subcommands, table")
    table.get_by_role("row", name="export").get_by_role("link", name="of calls failed").click()
    expect(as_admin.get_by_role("heading", name="Failing calls of export")).to_be_in_viewport()
    assert as_admin.url.endswith("?failing=export")
    table.get_by_role("link", name="list", exact=True).click()
    expect(as_admin.get_by_text("No failing calls of this subcommand")).to_be_visible()
    go_back(as_admin)
    as_admin.get_by_role("link", name="taskmgr export --output-format json").click()
    expect(as_admin.locator("#c2:target")).to_be_visible()
    assert complaints == []

"""Trends in a browser: filters in place, and a chart to read by keys and pointer, before and after Plotly draws it."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.builders import (
    close,
    make_guidance,
    make_run,
    make_subcommand,
    make_suite,
    make_target,
    make_trial,
)


def fill(project: Any) -> list[Any]:
    """Store twelve runs of a target that get worse from the eighth on, and one of another target."""
    version = make_suite(project, ["create", "export", "list"], name="Ledger")
    guidance = make_guidance(version.suite, "AGENTS.md v2")
    target, other = make_target(project, "claude"), make_target(project, "gemini")
    make_trial(close(make_run(version, target=other)))
    runs = []
    for number in range(12):
        run = make_run(
            version,
            target=target,
            tool_version=f"ledger {1 + number // 4}.0",
            guidance=guidance if number > 5 else None,
            verdict="regressed" if number == 7 else "",
            baseline=runs[0] if runs else None,
        )
        for key in ("create", "export", "list"):
            for trial in range(4):
                make_trial(run, key, outcome="fail" if number > 6 and trial < 2 else "pass")
        close(run)
        make_subcommand(run, "import", calls=12, errors=2 + number // 3)
        runs.append(run)
    return runs


SCRIPT = "**/plotly-basic*.js"


@pytest.fixture
def asked(as_admin: Page) -> list[str]:
    """Return the list that requests of Plotly's script are put into."""
    found: list[str] = []
    as_admin.on("request", lambda request: found.append(request.url) if "plotly" in request.url else None)
    return found


def drawn_points(page: Page) -> Locator:
    """Return the points that Plotly has drawn."""
    return page.locator(".plot .scatterlayer .points path")


def point_at_chart(page: Page, share: float = 0.5) -> None:
    """Move the mouse over the large chart, this share of its width from the left."""
    chart = page.get_by_role("figure").first
    box = chart.locator(".trend-plot").bounding_box()
    assert box
    page.mouse.move(box["x"] + share * box["width"], box["y"] + 120, steps=3)


def press_point(page: Page, place: int, run: Any) -> None:
    """Press a point once its text is shown: Plotly takes a press for the point that it shows."""
    point = drawn_points(page).nth(place)
    point.hover(force=True)
    expect(page.locator(".hovertext").first).to_contain_text(f"Run {run.pk}")
    point.click(force=True)


def wrong_with(page: Page, complaints: list[str]) -> list[Any]:
    """Return what axe, the console, the policy and the width have to complain of."""
    wide = ["wide"] if page.evaluate("document.documentElement.scrollWidth > innerWidth") else []
    violations = Axe().run(page).response["violations"]
    return [*violations, *wide, *complaints, *page.evaluate("window.violations")]


@pytest.mark.slow
def test_a_trend_is_filtered_in_place(as_admin: Page, live_server: Any, project: Any) -> None:
    fill(project)
    as_admin.goto(f"{live_server.url}/p/tools/trends/")
    expect(as_admin.get_by_label("Target")).to_have_value("claude")
    rows = as_admin.get_by_role("region", name="Values, table").locator("tbody tr")
    expect(rows).to_have_count(0)
    as_admin.get_by_text("12 runs as a table").click()
    expect(rows).to_have_count(12)
    as_admin.get_by_label("Tool version").select_option("ledger 3.0")
    as_admin.get_by_text("4 runs as a table").click()
    expect(rows).to_have_count(4)
    assert "tool_version=ledger%203.0" in as_admin.url


@pytest.mark.parametrize("with_plotly", [pytest.param(False, marks=pytest.mark.slow), True])
def test_keys_read_the_chart_and_open_a_run(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str], with_plotly: bool
) -> None:
    runs = fill(project)
    if not with_plotly:
        as_admin.route(SCRIPT, lambda route: route.abort())
    as_admin.goto(f"{live_server.url}/p/tools/trends/")
    reader = as_admin.get_by_role("slider", name="Runs of Pass rate")
    reader.focus()
    if with_plotly:
        expect(drawn_points(as_admin)).to_have_count(12)
    for _ in range(4):
        as_admin.keyboard.press("ArrowLeft")
    for attribute in ("aria-valuetext", "aria-valuenow"):
        expected = f"Run {runs[7].pk}, " if attribute == "aria-valuetext" else "8"
        assert (reader.get_attribute(attribute) or "").startswith(expected)
    expect(as_admin.locator("[data-readout]")).to_contain_text("50 %")
    as_admin.keyboard.press("Home")
    expect(reader).to_have_attribute("aria-valuenow", "1")
    if with_plotly:
        expect(as_admin.locator(".hovertext")).to_contain_text(f"Run {runs[0].pk}")
    as_admin.keyboard.press("Enter")
    card = as_admin.get_by_role("dialog", name=f"Run {runs[0].pk}")
    expect(card.get_by_role("link", name="Open run")).to_be_focused()
    assert not with_plotly or wrong_with(as_admin, complaints) == []
    as_admin.keyboard.press("Escape")
    expect(card).to_be_hidden()
    expect(reader).to_be_focused()
    as_admin.keyboard.press("Enter")
    as_admin.keyboard.press("Enter")
    expect(as_admin).to_have_url(f"{live_server.url}/p/tools/runs/{runs[0].pk}/")


def test_a_brush_zooms_and_a_press_opens_a_card_that_compares_from_there(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    runs = fill(project)
    as_admin.goto(f"{live_server.url}/p/tools/trends/")
    flags = as_admin.get_by_role("group", name="What changed").locator(".sign")
    expect(flags.filter(visible=True)).to_have_count(3)
    point_at_chart(as_admin)
    expect(drawn_points(as_admin)).to_have_count(12)
    # Plotly's own buttons have no names.
    expect(as_admin.locator(".modebar-btn")).to_have_count(0)
    as_admin.mouse.down()
    point_at_chart(as_admin, 0.95)
    as_admin.mouse.up()
    whole = as_admin.get_by_role("button", name="Show all runs")
    expect(whole).to_be_visible()
    expect(flags.filter(visible=True)).to_have_count(1)
    reader = as_admin.get_by_role("slider")
    reader.focus()
    as_admin.keyboard.press("Home")
    expect(as_admin.locator(".hovertext")).to_be_visible()
    whole.click()
    expect(whole).to_be_hidden()
    expect(flags.filter(visible=True)).to_have_count(3)
    press_point(as_admin, 11, runs[11])
    card = as_admin.get_by_role("dialog", name=f"Run {runs[11].pk}")
    expect(card.get_by_role("link", name="Compare from here")).to_be_hidden()
    card.get_by_role("button", name="Close").click()
    press_point(as_admin, 9, runs[9])
    as_admin.get_by_role("link", name="Compare from here").click()
    expect(as_admin).to_have_url(f"{live_server.url}/p/tools/compare/?runs={runs[9].pk},{runs[11].pk}")
    assert complaints == []


@pytest.mark.slow
def test_plotly_is_loaded_once_somebody_points_at_the_chart(
    as_admin: Page, live_server: Any, project: Any, asked: list[str]
) -> None:
    fill(project)
    as_admin.goto(f"{live_server.url}/p/tools/trends/")
    as_admin.get_by_role("heading", name="Trends", exact=True).hover()
    with as_admin.expect_request("**/later"):
        as_admin.evaluate("() => { fetch('/later'); }")
    assert asked == []
    expect(as_admin.get_by_role("group", name="Pass rate, 12 runs").get_by_role("link")).to_have_count(12)
    for measure in ("Trial: Time per trial", "Trial: Pass rate"):
        point_at_chart(as_admin)
        expect(drawn_points(as_admin)).to_have_count(12)
        as_admin.get_by_role("heading", name="Trends", exact=True).hover()
        as_admin.get_by_label("Measure").select_option(measure)
        expect(as_admin.get_by_role("figure").first.locator("figcaption")).to_contain_text(measure[7:])
        expect(as_admin.get_by_role("group", name=measure[7:]).locator(".point").first).to_be_visible()
    point_at_chart(as_admin, 0.4)
    expect(drawn_points(as_admin)).to_have_count(12)
    assert len(asked) == 1


@pytest.mark.slow
def test_a_flag_shows_its_name_when_it_is_pointed_at_or_has_the_focus(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    fill(project)
    as_admin.goto(f"{live_server.url}/p/tools/trends/")
    first, second = as_admin.get_by_role("img", name="tool ledger").all()
    expect(first.get_by_text("tool ledger 2.0")).to_be_hidden()
    first.get_by_text("T", exact=True).hover()
    expect(first.get_by_text("tool ledger 2.0")).to_be_visible()
    second.focus()
    expect(second.get_by_text("tool ledger 3.0")).to_be_visible()


@pytest.mark.slow
def test_a_run_is_annotated_from_its_card(as_admin: Page, live_server: Any, project: Any) -> None:
    runs = fill(project)
    as_admin.goto(f"{live_server.url}/p/tools/trends/?suite=ledger")
    as_admin.get_by_role("slider").focus()
    as_admin.keyboard.press("Enter")
    as_admin.get_by_role("button", name="Annotate…").click()
    as_admin.keyboard.type("Moved to a new host")
    as_admin.keyboard.press("Enter")
    expect(as_admin.get_by_role("region", name="Annotations")).to_contain_text(f"run {runs[11].pk}")
    expect(as_admin.get_by_role("img", name="✎: Moved to a new host")).to_be_visible()
    as_admin.get_by_role("button", name="Remove Moved to a new host").click()
    expect(as_admin.get_by_text("Removed the annotation.")).to_be_visible()


@pytest.mark.slow
def test_the_chart_of_plotly_with_its_card_gives_no_reason_to_complain_on_a_phone(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    fill(project)
    as_admin.set_viewport_size({"width": 390, "height": 844})
    as_admin.goto(f"{live_server.url}/p/tools/trends/")
    as_admin.get_by_role("slider").focus()
    expect(drawn_points(as_admin)).to_have_count(12)
    as_admin.keyboard.press("Enter")
    assert wrong_with(as_admin, complaints) == []

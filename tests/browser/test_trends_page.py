"""Trends in a browser: filters in place, and points that lead to their runs."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

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
            for trial in range(10):
                make_trial(run, key, outcome="fail" if number > 6 and trial < 5 else "pass")
        close(run)
        make_subcommand(run, "import", calls=12, errors=2 + number // 3)
        runs.append(run)
    return runs


def test_a_trend_is_filtered_and_a_point_leads_to_its_run(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    runs = fill(project)
    as_admin.goto(f"{live_server.url}/p/tools/trends/")
    expect(as_admin.get_by_label("Target")).to_have_value("claude")
    expect(as_admin.get_by_role("region", name="Values, table").locator("tbody tr")).to_have_count(12)
    as_admin.get_by_label("Tool version").select_option("ledger 3.0")
    expect(as_admin.get_by_role("region", name="Values, table").locator("tbody tr")).to_have_count(4)
    assert "tool_version=ledger%203.0" in as_admin.url
    as_admin.go_back()
    chart = as_admin.get_by_role("group", name="Pass rate, 12 runs")
    point = chart.get_by_role("link", name=f"Run {runs[7].pk},")
    point.hover()
    assert "regressed" in (point.text_content() or "")
    point.focus()
    as_admin.keyboard.press("Enter")
    expect(as_admin).to_have_url(f"{live_server.url}/p/tools/runs/{runs[7].pk}/")


def test_a_chosen_measure_can_be_zoomed_into_and_leads_to_its_runs(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    runs = fill(project)
    as_admin.goto(f"{live_server.url}/p/tools/trends/?measure=trial/pass")
    figure = as_admin.get_by_role("img", name="Pass rate, interactive")
    points = figure.locator(".scatterlayer .points path")
    expect(points).to_have_count(12)
    points.nth(11).hover(force=True)
    expect(figure.locator(".hovertext").first).to_contain_text(f"run {runs[11].pk}")
    points.nth(11).click(force=True)
    expect(as_admin).to_have_url(f"{live_server.url}/p/tools/runs/{runs[11].pk}/")

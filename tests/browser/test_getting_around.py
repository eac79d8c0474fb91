"""Keys, links and forms that lead to another page or to a place on this one."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.results.search.trial_search import index_trials
from tests.browser.conftest import go_back
from tests.builders import close, make_run, make_suite, make_trial, used
from tests.shell_events import shell
from tests.trial_parts import make_command, make_judging, make_transcript


def test_keys_lead_to_the_next_trial_and_to_a_search_which_is_narrowed(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    run = make_run(make_suite(project))
    trials = [make_trial(run, outcome=outcome, answer="Shipped the jar.") for outcome in ("pass", "fail")]
    index_trials([trial.pk for trial in trials])
    as_admin.goto(f"{live_server.url}/p/tools/trials/{trials[0].pk}/")
    as_admin.keyboard.press("j")
    as_admin.wait_for_url(f"**/trials/{trials[1].pk}/")
    as_admin.keyboard.press("/")
    expect(as_admin.get_by_role("searchbox")).to_be_focused()
    # In a field, j is a letter.
    as_admin.keyboard.type("jar")
    expect(as_admin.get_by_role("searchbox")).to_have_value("jar")
    as_admin.keyboard.press("Enter")
    found = as_admin.get_by_role("region", name="Trials")
    expect(found.get_by_text("jar", exact=True)).to_have_count(2)
    as_admin.get_by_label("Outcome").select_option("fail")
    as_admin.get_by_role("button", name="Search", exact=True).click()
    expect(found.get_by_text("jar", exact=True)).to_have_count(1)
    found.get_by_role("link", name="create").click()
    as_admin.wait_for_url(f"**/trials/{trials[1].pk}/")


@pytest.mark.slow
def test_the_keyboard_reaches_the_content_first(as_admin: Page, live_server: Any, project: Any) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    as_admin.keyboard.press("Tab")
    expect(as_admin.get_by_role("link", name="Skip to content")).to_be_focused()


def test_signing_in_and_out_works(page: Page, live_server: Any, project: Any, django_user_model: Any) -> None:
    django_user_model.objects.create_user("grace", password="a long enough one")
    page.goto(live_server.url)
    page.get_by_label("Name").fill("grace")
    page.get_by_label("Password").fill("a long enough one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("No projects yet")).to_be_visible()
    page.get_by_text("grace").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


@pytest.mark.slow
def test_comparison_chips_swap_scenarios_and_the_address(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    version = make_suite(project, ("create", "export"))
    runs = [make_run(version) for _ in range(2)]
    for run, outcome in zip(runs, ("pass", "fail"), strict=True):
        make_trial(run, "create", outcome="pass")
        make_trial(run, "export", outcome=outcome)
    as_admin.goto(f"{live_server.url}/p/tools/compare/?runs={runs[0].pk},{runs[1].pk}&show=all")
    rows = as_admin.locator("#scenarios tbody th")
    expect(rows).to_have_text(["export", "create"])
    chip = as_admin.locator("#scenarios .chip", has_text="Worse")
    chip.focus()
    chip.press("Enter")
    expect(rows).to_have_text(["export"])
    expect(chip).to_have_attribute("aria-current", "true")
    assert as_admin.url.endswith("&show=worse")
    as_admin.reload()
    expect(rows).to_have_text(["export"])
    go_back(as_admin)
    expect(rows).to_have_text(["export", "create"])
    assert complaints == []


@pytest.mark.slow
def test_a_cited_command_is_linked_from_any_tab(as_admin: Page, live_server: Any, project: Any) -> None:
    trial = make_trial(make_run(make_suite(project)), outcome="fail")
    make_transcript(trial, [*shell("tool list"), *shell("tool export --bad", "no", 2, number=1)])
    make_judging(trial, content={"negatives": ["Guessed `--bad`."]})
    as_admin.goto(f"{live_server.url}/p/tools/trials/{trial.pk}/")
    cited = as_admin.locator(".statements").get_by_role("link", name="command 2")
    cited.click()
    expect(as_admin.locator("#c2:target")).to_be_visible()
    as_admin.get_by_label("Transcript").get_by_role("link", name="Messages").click()
    expect(as_admin.locator("#c2")).to_have_count(0)
    cited.click()
    expect(as_admin.locator("#c2:target")).to_be_visible()


def test_runs_are_filtered_and_failing_calls_are_reached_without_a_script(
    without_script: Page, live_server: Any, project: Any
) -> None:
    make_run(make_suite(project, name="Beta"))
    run = make_run(make_suite(project, name="Alpha"))
    trial = make_trial(run, outcome="fail", detail=used({"name": "export", "calls": 2, "errors": 1}))
    make_transcript(trial, [*shell("tool list"), *shell("tool export --bad", "no", 2, number=1)])
    make_command(trial, 0, "tool export --bad", subcommand="export", exit_code=2, failed=True, event=2)
    close(run)
    without_script.goto(f"{live_server.url}/p/tools/runs/")
    without_script.get_by_label("Text").fill("alp")
    without_script.get_by_role("button", name="Show").click()
    expect(without_script.locator("#results tbody tr")).to_have_count(1)
    without_script.get_by_role("link", name=f"Run {run.pk}", exact=True).click()
    without_script.get_by_text("Commands by subcommand").click()
    table = without_script.get_by_role("region", name="Subcommands, table")
    table.get_by_role("link", name="export", exact=True).click()
    without_script.get_by_role("link", name="tool export --bad").click()
    expect(without_script.locator("#c2:target")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_the_menu_of_a_head_stays_on_the_page(
    as_admin: Page, live_server: Any, project: Any, width: int
) -> None:
    run = make_run(make_suite(project, ("export",)), branch="a-branch-with-a-name/that-is-longer-than-most")
    trial = make_trial(run, outcome="fail")
    as_admin.set_viewport_size({"width": width, "height": 900})
    for path in (f"runs/{run.pk}/", f"trials/{trial.pk}/"):
        as_admin.goto(f"{live_server.url}/p/tools/{path}")
        as_admin.locator("summary", has_text="More").click()
        box = as_admin.locator(".head .menu[open] > ul").bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    as_admin.get_by_role("link", name="Rerun this scenario…").click()
    expect(as_admin.get_by_role("checkbox", name="export")).to_be_checked()

"""Asking for runs in a browser: the plan follows the form, and nothing needs a script."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from runs.models import Run
from tests.builders import make_guidance, make_suite, make_target
from tests.runs.past_runs import past_run

KEYS = ("a", "b", "c", "d", "e", "f")


@pytest.fixture
def history(project: Any) -> Any:
    """Return a suite that ran three times on one of two targets."""
    target = make_target(project)
    make_target(project, "other")
    version = make_suite(project, KEYS, name="Basics", tags=["smoke"])
    for failing in ("a", "b", "c"):
        outcomes = {key: ["fail" if key == failing else "pass"] * 3 for key in KEYS}
        past_run(version, outcomes, seconds=30.0, target=target)
    return version


@pytest.fixture
def form(as_admin: Page, live_server: Any, history: Any) -> Page:
    """Return the page of a new run on the target that is known."""
    as_admin.goto(f"{live_server.url}/p/tools/runs/new/?targets=local")
    return as_admin


def enter_starts_nothing(page: Page) -> None:
    before = Run.objects.count()
    page.get_by_label("Budget, USD").fill("40")
    page.get_by_label("Budget, USD").press("Enter")
    expect(page.get_by_role("button", name="Start 6 trials")).to_be_visible()
    expect(page.get_by_label("Budget, USD")).to_have_value("40")
    assert Run.objects.count() == before


def test_the_plan_follows_the_form_its_mistakes_and_its_buttons(form: Page, complaints: list[str]) -> None:
    plan, trials, other = (
        form.locator("#plan"),
        form.get_by_label("Trials each"),
        form.get_by_role("checkbox", name="other"),
    )
    expect(plan).to_contain_text("$0.60")
    trials.fill("0")
    trials.blur()
    expect(form.locator("#trials-note")).to_have_text("Enter 1 or more.")
    expect(trials).to_have_accessible_description("Enter 1 or more.")
    trials.fill("4")
    trials.blur()
    expect(form.locator("#trials-note")).to_have_text("")
    expect(form.get_by_role("button", name="Start 24 trials")).to_be_visible()
    expect(plan).to_contain_text("$2.40")
    other.check()
    expect(form.get_by_role("button", name="Start 48 trials")).to_be_visible()
    expect(plan).to_contain_text("other: no runs on this target yet, so no estimate.")
    other.uncheck()
    expect(form.get_by_role("button", name="Start 24 trials")).to_be_visible()
    pressed = form.get_by_role("button", name="Plan with 10 trials each")
    pressed.click()
    expect(form.get_by_role("button", name="Start 60 trials")).to_be_visible()
    expect(trials).to_have_value("10")
    expect(pressed).to_have_attribute("aria-pressed", "true")
    expect(pressed).to_be_focused()
    trials.fill("2")
    trials.blur()
    expect(form.get_by_role("button", name="Start 12 trials")).to_be_visible()
    assert [*complaints, *form.evaluate("window.violations")] == []
    form.get_by_role("button", name="Start 12 trials").click()
    expect(form.get_by_text("Waiting for a worker.")).to_be_visible()
    assert Run.objects.latest("pk").trials == 12
    assert complaints == []


@pytest.mark.slow
def test_the_plan_follows_a_guidance_document(form: Page, complaints: list[str]) -> None:
    file = {"name": "AGENTS.md", "mimeType": "text/markdown", "buffer": b"advice"}
    form.get_by_label("Guidance document").set_input_files(file)  # type: ignore[arg-type]
    expect(form.locator("#document-note")).to_have_text("Its path in the workspace: AGENTS.md.")
    expect(form.locator("#plan")).to_contain_text("--guidance AGENTS.md")
    form.get_by_role("button", name="Start 6 trials").click()
    expect(form.get_by_text("Waiting for a worker.")).to_be_visible()
    assert Run.objects.latest("pk").guidance is not None
    assert complaints == []


def test_what_was_typed_before_the_scripts_ran_is_planned(
    as_admin: Page, live_server: Any, history: Any, complaints: list[str]
) -> None:
    held: list[Route] = []
    filled: list[bool] = []
    as_admin.route("**/*.js", lambda route: route.continue_() if filled else held.append(route))
    as_admin.goto(f"{live_server.url}/p/tools/runs/new/?targets=local", wait_until="commit")
    as_admin.get_by_label("Trials each").fill("4")
    as_admin.get_by_label("Trials each").blur()
    filled.append(True)
    for script in held:
        script.continue_()
    expect(as_admin.get_by_role("button", name="Start 24 trials")).to_be_visible()
    assert complaints == []


@pytest.mark.slow
def test_an_untouched_form_asks_for_no_other_plan(form: Page, live_server: Any) -> None:
    asked: list[str] = []
    form.on("request", lambda request: asked.append(request.method))
    form.clock.install()
    form.reload()
    # Beyond the time after which an edited form asks.
    form.clock.run_for(1_000)
    with form.expect_request("**/later"):
        form.evaluate("() => { fetch('/later'); }")
    assert "POST" not in asked


@pytest.mark.slow
def test_what_the_browser_fills_in_again_on_going_back_is_planned(form: Page, live_server: Any) -> None:
    form.get_by_label("Trials each").fill("4")
    form.get_by_label("Trials each").blur()
    expect(form.get_by_role("button", name="Start 24 trials")).to_be_visible()
    form.goto(f"{live_server.url}/p/tools/runs/")
    form.go_back()
    trials = form.get_by_label("Trials each").input_value()
    expect(form.get_by_role("button", name=f"Start {6 * int(trials)} trials")).to_be_visible()


def test_scenarios_follow_the_suite_and_are_narrowed_in_place(
    form: Page, project: Any, complaints: list[str]
) -> None:
    make_suite(project, ("x", "y"), name="Second", tags=["slow"])
    form.reload()
    form.get_by_text("Only some of its 6 scenarios").click()
    form.get_by_label("Trials each").fill("3")
    form.locator("#id_suite").select_option("second")
    form.get_by_text("Only some of its 2 scenarios").click()
    expect(form.get_by_role("checkbox", name="slow 2")).to_be_visible()
    form.locator("#id_suite").select_option("basics")
    form.get_by_text("Only some of its 6 scenarios").click()
    form.get_by_role("button", name="Failed last time (1)").click()
    expect(form.get_by_role("checkbox", name="c failed last time")).to_be_checked()
    expect(form.get_by_label("Trials each")).to_have_value("3")
    expect(form.get_by_role("button", name="Start 3 trials")).to_be_visible()
    form.get_by_role("checkbox", name="a smoke").check()
    expect(form.get_by_role("button", name="Start 6 trials")).to_be_visible()
    form.get_by_role("button", name="All scenarios").click()
    expect(form.get_by_role("button", name="Start 18 trials")).to_be_visible()
    assert complaints == []


def test_a_scenario_of_a_long_list_is_found_by_name(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    make_target(project)
    make_suite(project, [f"case-{n}" for n in range(40)], name="Large")
    asked: list[str] = []
    as_admin.on("request", lambda request: asked.append(request.method))
    as_admin.goto(f"{live_server.url}/p/tools/runs/new/?targets=local")
    as_admin.get_by_text("Only some of its 40 scenarios").click()
    boxes = as_admin.get_by_role("group", name="Scenarios").get_by_role("checkbox")
    expect(boxes).to_have_count(40)
    narrowing = as_admin.get_by_role("searchbox", name="Filter: Scenarios")
    narrowing.fill("case-3")
    expect(boxes).to_have_count(11)
    expect(as_admin.get_by_text("11 of 40 shown")).to_be_visible()
    narrowing.press("Enter")
    narrowing.press("Tab")
    as_admin.keyboard.press("Tab")
    as_admin.get_by_role("checkbox", name="case-39").press("Space")
    expect(as_admin.get_by_role("button", name="Start 1 trial")).to_be_visible()
    assert asked.count("POST") == 1, "the filter is no choice"
    narrowing.fill("nothing")
    expect(boxes).to_have_count(1)
    expect(as_admin.get_by_role("checkbox", name="case-39")).to_be_checked()
    assert complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_tag_does_not_widen_the_page(
    as_admin: Page, live_server: Any, project: Any, width: int
) -> None:
    make_target(project)
    make_suite(project, ("a" * 100,), name="Basics", tags=["t" * 150])
    as_admin.set_viewport_size({"width": width, "height": 900})
    query = f"targets=local&only={'a' * 100}&tags={'t' * 150}&run_tags={'r' * 150}&models={'m' * 150}"
    as_admin.goto(f"{live_server.url}/p/tools/runs/new/?{query}")
    expect(as_admin.get_by_role("checkbox", name="r" * 150)).to_be_checked()
    assert as_admin.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.slow
def test_enter_in_a_field_starts_nothing(form: Page) -> None:
    enter_starts_nothing(form)


def test_the_plan_is_made_without_a_script(without_script: Page, live_server: Any, history: Any) -> None:
    page = without_script
    page.goto(f"{live_server.url}/p/tools/runs/new/?targets=local")
    expect(page.locator("#plan")).to_contain_text("$0.60")
    enter_starts_nothing(page)
    page.get_by_role("button", name="Plan with 5 trials each").click()
    expect(page.get_by_label("Trials each")).to_have_value("5")
    expect(page.get_by_role("button", name="Start 30 trials")).to_be_visible()
    page.get_by_text("Only some of its 6 scenarios").click()
    page.get_by_role("button", name="Failed last time (1)").click()
    expect(page.get_by_role("button", name="Start 5 trials")).to_be_visible()
    page.get_by_text("As a command").click()
    command = "manage.py run_scenarios basics --project tools --target local --only c --trials 5 --max-usd 40"
    expect(page.locator("#plan pre")).to_have_text(command)


@pytest.mark.slow
def test_a_start_with_another_number_of_trials_is_refused(
    without_script: Page, live_server: Any, history: Any
) -> None:
    page, before = without_script, Run.objects.count()
    page.goto(f"{live_server.url}/p/tools/runs/new/?targets=local")
    page.get_by_label("Trials each").fill("20")
    page.get_by_role("button", name="Start 6 trials").click()
    expect(page.get_by_role("alert")).to_contain_text("the plan grew to 120")
    assert Run.objects.count() == before
    page.get_by_role("button", name="Start 120 trials").click()
    expect(page.get_by_text("Waiting for a worker.")).to_be_visible()


def test_start_waits_for_the_plan_and_asks_again_only_if_it_grew(
    form: Page, live_server: Any, complaints: list[str]
) -> None:
    before = Run.objects.count()
    form.get_by_label("Trials each").fill("2")
    # The plan is 200 ms behind, and the press comes at once.
    form.locator("[name=start]").click()
    expect(form.get_by_text("The plan grew to 12 trials. Press Start again to run them.")).to_be_visible()
    assert Run.objects.count() == before
    form.get_by_label("Trials each").fill("1")
    form.locator("[name=start]").click()
    form.wait_for_url(f"{live_server.url}/p/tools/runs/*/")
    assert Run.objects.latest("pk").trials == 6
    assert complaints == []


@pytest.mark.slow
def test_guidance_follows_the_suite_in_place(
    form: Page, project: Any, history: Any, live_server: Any
) -> None:
    other = make_guidance(make_suite(project, name="Other").suite, "other-guidance")
    form.reload()
    cards = form.get_by_role("group", name="Guidance").get_by_role("checkbox")
    expect(cards).to_have_count(0)
    form.locator("#id_suite").select_option("other")
    expect(cards).to_have_count(2)
    expect(form.get_by_role("checkbox", name=str(other))).not_to_be_checked()
    expect(form.get_by_role("checkbox", name="Latest upload")).to_be_checked()
    expect(form.locator("#id_baseline_run")).to_have_value("")
    form.get_by_text("More", exact=True).click()
    form.get_by_label("Threshold").fill("0.5")
    form.get_by_label("Threshold").press("Tab")
    form.get_by_text("As a command").click()
    expect(form.locator("#plan pre")).to_contain_text("--threshold 0.5")


@pytest.mark.slow
def test_an_older_plan_takes_no_choice_back(form: Page, project: Any, history: Any) -> None:
    make_suite(project, name="Other")
    chosen = make_guidance(history.suite, "own-guidance")
    form.reload()
    held: list[Route] = []
    form.route("**/runs/new/", lambda route: route.continue_() if held else held.append(route))
    # The plan of the other suite is on its way.
    with form.expect_request("**/runs/new/"):
        form.locator("#id_suite").select_option("other")
    form.locator("#id_suite").select_option("basics")
    form.get_by_role("checkbox", name=str(chosen)).check()
    held[0].continue_()
    form.get_by_text("As a command").click()
    expect(form.locator("#plan pre")).to_contain_text("--guidance ")
    expect(form.get_by_role("checkbox", name=str(chosen))).to_be_checked()


@pytest.mark.slow
def test_nothing_of_a_plan_is_cut(as_admin: Page, live_server: Any, history: Any) -> None:
    as_admin.set_viewport_size({"width": 1280, "height": 900})
    as_admin.goto(f"{live_server.url}/p/tools/runs/new/?targets=local&targets=other&models=m1,m2")
    tables = as_admin.locator("#plan .scroll")
    expect(tables.first).to_be_visible()
    widths = tables.evaluate_all("tables => tables.map(each => [each.scrollWidth, each.clientWidth])")
    assert all(whole <= shown for whole, shown in widths), widths

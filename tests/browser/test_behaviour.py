"""What only a browser shows: swapping, polling, dropping, keys, and that nothing needs a script."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from runs.checking import carry_out_check
from runs.models import Run, TargetCheck, Trial
from runs.recording import close_if_done
from scenarios.models import Suite
from tests.browser.history import fill
from tests.builders import (
    make_judging,
    make_member,
    make_run,
    make_suite,
    make_target,
    make_transcript,
    make_trial,
    make_version,
    shell,
)

BAD = (
    b"name: x\ntask:\n  prompt: Do it.\nevaluation:\n  gates:\n    - type: file_exist\n      path: out.txt\n"
)
GOOD = BAD.replace(b"file_exist\n", b"file_exists\n").replace(
    b"name: x", b"name: list-files\ndescription: Lists."
)


def test_typing_filters_the_runs_and_keeps_the_address(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    for name in ("Alpha", "Beta"):
        make_run(make_suite(project, name=name))
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    expect(as_admin.locator("#results tbody tr")).to_have_count(2)
    as_admin.get_by_label("Text").press_sequentially("alp")
    expect(as_admin.locator("#results tbody tr")).to_have_count(1)
    assert "q=alp" in as_admin.url
    as_admin.reload()
    expect(as_admin.locator("#results tbody tr")).to_have_count(1)


def test_a_running_run_refreshes_itself_once_it_is_over(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    run = make_run(make_suite(project), state="running", started=timezone.now())
    trial = make_trial(run, outcome="", state="running", started=timezone.now())
    as_admin.goto(f"{live_server.url}/p/tools/runs/{run.pk}/")
    expect(as_admin.get_by_text("0 of 1 trials are done")).to_be_visible()
    Trial.objects.filter(pk=trial.pk).update(state="finished", outcome="pass")
    Run.objects.filter(pk=run.pk).update(open=0, passed=1)
    assert close_if_done(run.pk)
    expect(as_admin.get_by_text("Every trial that counts passed")).to_be_visible()
    expect(as_admin.locator("#progress")).to_have_count(0)


def test_cancelling_is_one_press(as_admin: Page, live_server: Any, project: Any) -> None:
    run = make_run(make_suite(project), state="queued")
    make_trial(run, outcome="")
    as_admin.goto(f"{live_server.url}/p/tools/runs/{run.pk}/")
    as_admin.get_by_role("button", name="Cancel run").click()
    expect(as_admin.get_by_text(f"Run {run.pk} is being cancelled")).to_be_visible()
    assert Run.objects.get(pk=run.pk).state == "cancelled"


def test_a_bad_file_is_told_in_place_and_a_good_one_is_kept(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/suites/")
    as_admin.locator("#file").set_input_files({"name": "list.yaml", "mimeType": "text/yaml", "buffer": BAD})
    as_admin.get_by_role("button", name="Upload").click()
    expect(as_admin.locator("#upload .problems li").first).to_be_visible()
    expect(as_admin.locator("#upload .source .here").first).to_have_text("    - type: file_exist")
    as_admin.locator("#file").set_input_files({"name": "list.yaml", "mimeType": "text/yaml", "buffer": GOOD})
    as_admin.get_by_role("button", name="Upload").click()
    expect(as_admin.get_by_text("is version 1")).to_be_visible()
    assert Suite.objects.count() == 1


def test_what_was_checked_is_kept_by_one_press(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/suites/")
    as_admin.locator("#file").set_input_files({"name": "list.yaml", "mimeType": "text/yaml", "buffer": GOOD})
    as_admin.get_by_label("Check only").check()
    as_admin.get_by_role("button", name="Upload").click()
    expect(as_admin.get_by_text("it would be version 1")).to_be_visible()
    assert Suite.objects.count() == 0
    as_admin.get_by_role("button", name="Keep as version 1").click()
    expect(as_admin.get_by_text("is version 1")).to_be_visible()
    assert Suite.objects.count() == 1
    assert complaints == []


def test_without_a_script_the_files_are_asked_for_once_more(
    browser: Browser, live_server: Any, project: Any
) -> None:
    client = Client()
    client.force_login(make_member(project, "author", "ada"))
    context = browser.new_context(java_script_enabled=False)
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}
    context.add_cookies([cookie])
    plain = context.new_page()
    plain.goto(f"{live_server.url}/p/tools/suites/")
    chosen = {"name": "list.yaml", "mimeType": "text/yaml", "buffer": GOOD}
    plain.locator("#file").set_input_files(chosen)
    plain.get_by_label("Check only").check()
    plain.get_by_role("button", name="Upload").click()
    expect(plain.get_by_text("choose the files above once more")).to_be_visible()
    plain.locator("#file").set_input_files(chosen)
    plain.get_by_role("button", name="Keep as version 1").click()
    expect(plain.get_by_text("is version 1")).to_be_visible()
    context.close()


def test_choosing_a_version_swaps_its_difference_and_keeps_the_address(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    suite = make_suite(project, ("create",), name="Basics").suite
    for prompt in ("Second.", "Third."):
        make_version(suite, create={"prompt": prompt})
    as_admin.goto(f"{live_server.url}/p/tools/suites/basics/")
    expect(as_admin.get_by_role("heading", name="v2 → v3")).to_be_visible()
    as_admin.get_by_role("link", name="Version 2, what it changed").click()
    expect(as_admin.get_by_role("heading", name="v1 → v2")).to_be_visible()
    assert as_admin.url.endswith("?version=2")
    as_admin.get_by_role("link", name="create", exact=True).last.click()
    expect(as_admin.get_by_text("prompt: Second.")).to_be_visible()


def test_the_list_of_suites_is_narrowed_in_place(as_admin: Page, live_server: Any, project: Any) -> None:
    make_suite(project, name="Alpha", tags=["smoke"])
    make_suite(project, name="Beta")
    as_admin.goto(f"{live_server.url}/p/tools/suites/")
    as_admin.get_by_label("Tag").select_option("smoke")
    expect(as_admin.locator("#suites tbody tr")).to_have_count(1)
    assert "tag=smoke" in as_admin.url
    as_admin.get_by_role("link", name="Clear the filters").click()
    expect(as_admin.locator("#suites tbody tr")).to_have_count(2)


def test_files_can_be_dropped(as_admin: Page, live_server: Any, project: Any) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/suites/")
    drop = """(text) => {
        const files = new DataTransfer();
        files.items.add(new File([text], "list.yaml"));
        const event = new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true });
        document.querySelector("[data-drop]").dispatchEvent(event);
    }"""
    as_admin.evaluate(drop, GOOD.decode())
    as_admin.get_by_role("button", name="Upload").click()
    expect(as_admin.get_by_text("is version 1")).to_be_visible()


def test_a_trend_is_drawn_in_the_colours_of_the_page(as_admin: Page, live_server: Any, project: Any) -> None:
    fill(project)
    as_admin.goto(f"{live_server.url}/p/tools/trends/")
    expect(as_admin.locator(".plot .main-svg").first).to_be_visible()
    points = as_admin.locator(".plot .scatterlayer .points path")
    expect(points).to_have_count(6)
    light = points.first.evaluate("element => getComputedStyle(element).fill")
    as_admin.emulate_media(color_scheme="dark")
    as_admin.wait_for_function(
        "before => getComputedStyle(document.querySelector('.plot .points path')).fill !== before", arg=light
    )


def test_another_suite_offers_its_own_measures(as_admin: Page, live_server: Any, project: Any) -> None:
    fill(project)
    make_suite(project, name="Other")
    as_admin.goto(f"{live_server.url}/p/tools/trends/?suite=taskmgr-basics")
    suite, measure = (as_admin.locator(f"select[name={name}]") for name in ("suite", "measure"))
    expect(measure.locator("option")).not_to_have_count(0)
    suite.select_option("other")
    expect(as_admin.get_by_text("Nothing to draw yet")).to_be_visible()
    expect(measure.locator("option")).to_have_count(0)
    suite.select_option("taskmgr-basics")
    measure.focus()
    measure.select_option("Judge: Judge")
    expect(as_admin.locator("figcaption")).to_contain_text("Judge")
    expect(measure).to_be_focused()


def test_keys_lead_to_the_search_and_the_next_trial(as_admin: Page, live_server: Any, project: Any) -> None:
    run = make_run(make_suite(project))
    first, second = make_trial(run), make_trial(run)
    as_admin.goto(f"{live_server.url}/p/tools/trials/{first.pk}/")
    as_admin.keyboard.press("j")
    as_admin.wait_for_url(f"**/trials/{second.pk}/")
    as_admin.keyboard.press("/")
    expect(as_admin.get_by_role("searchbox")).to_be_focused()
    as_admin.keyboard.type("j")
    expect(as_admin.get_by_role("searchbox")).to_have_value("j")


def test_the_keyboard_reaches_the_content_first(as_admin: Page, live_server: Any, project: Any) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    as_admin.keyboard.press("Tab")
    expect(as_admin.get_by_role("link", name="Skip to content")).to_be_focused()


def test_runs_can_be_filtered_without_a_script(without_script: Page, live_server: Any, project: Any) -> None:
    for name in ("Alpha", "Beta"):
        make_run(make_suite(project, name=name))
    without_script.goto(f"{live_server.url}/p/tools/runs/")
    without_script.get_by_label("Text").fill("alp")
    without_script.get_by_role("button", name="Show").click()
    expect(without_script.locator("#results tbody tr")).to_have_count(1)


def test_a_file_can_be_uploaded_without_a_script(
    without_script: Page, live_server: Any, project: Any
) -> None:
    without_script.goto(f"{live_server.url}/p/tools/suites/")
    without_script.locator("#file").set_input_files(
        {"name": "list.yaml", "mimeType": "text/yaml", "buffer": GOOD}
    )
    without_script.get_by_role("button", name="Upload").click()
    expect(without_script.get_by_text("is version 1")).to_be_visible()


def test_signing_in_and_out_works(page: Page, live_server: Any, project: Any, django_user_model: Any) -> None:
    django_user_model.objects.create_user("grace", password="a long enough one")
    page.goto(live_server.url)
    page.get_by_label("Name").fill("grace")
    page.get_by_label("Password").fill("a long enough one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("You are in no project yet")).to_be_visible()
    page.get_by_text("grace").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_triage_swaps_the_card_and_the_count_in_the_navigation(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    fill(project)
    as_admin.goto(f"{live_server.url}/p/tools/regressions/")
    expect(as_admin.locator("#untriaged .count")).to_be_visible()
    as_admin.get_by_label("Note").fill("Wrong flag in the guidance.")
    as_admin.get_by_role("button", name="Acknowledge").click()
    expect(as_admin.locator("article .badge")).to_have_text("acknowledged")
    expect(as_admin.get_by_text("✓ Saved.")).to_be_visible()
    expect(as_admin.locator("#untriaged .count")).to_have_count(0)
    assert complaints == []


def test_a_check_is_polled_until_a_worker_has_answered(
    as_admin: Page, live_server: Any, project: Any, settings: Any
) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    make_target(project, "local")
    as_admin.goto(f"{live_server.url}/p/tools/targets/")
    as_admin.get_by_role("button", name="Check local").click()
    expect(as_admin.get_by_text("checking")).to_be_visible()
    carry_out_check(TargetCheck.objects.get().pk)
    expect(as_admin.get_by_text("ready")).to_be_visible()


def test_two_ticked_runs_are_compared(as_admin: Page, live_server: Any, project: Any) -> None:
    version = make_suite(project)
    runs = [make_run(version) for _ in range(2)]
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    for run in runs[::-1]:
        as_admin.get_by_label(f"Choose run {run.pk}").check()
    as_admin.get_by_role("button", name="Compare the two chosen").click()
    expect(as_admin.get_by_role("heading", level=1)).to_have_text(
        f"Run {runs[1].pk} against run {runs[0].pk}"
    )


def test_a_role_is_kept_when_it_is_chosen(as_admin: Page, live_server: Any, project: Any) -> None:
    member = make_member(project, "viewer", "grace").memberships.get()
    as_admin.goto(f"{live_server.url}/p/tools/settings/")
    with as_admin.expect_response(f"**/members/{member.pk}/role/"):
        as_admin.get_by_label("Role of grace").select_option("author")
    member.refresh_from_db()
    assert member.role == "author"


def test_the_files_of_a_trial_come_into_its_tab(as_admin: Page, live_server: Any, project: Any) -> None:
    trial = fill(project)["trial"]
    as_admin.goto(f"{live_server.url}/p/tools/trials/{trial.pk}/")
    expect(as_admin.get_by_text("2 added, 1 changed, 1 removed")).to_be_visible()
    as_admin.get_by_label("Transcript").get_by_role("link", name="Files").first.click()
    changed = as_admin.get_by_role("region", name="history.log")
    expect(changed.locator("tr.added")).to_have_text("41+41 export")
    expect(as_admin.get_by_text("It is no text, so only sizes are compared.")).to_be_visible()
    with as_admin.expect_download() as download:
        changed.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "history.log"


def test_a_cited_command_is_led_to_from_any_tab(as_admin: Page, live_server: Any, project: Any) -> None:
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

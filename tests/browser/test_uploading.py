"""Uploading files: dropped, chosen, reported in place, kept, also without a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, Page, expect

from runs.models import Run
from scenarios.models import Suite
from tests.browser.conftest import follow
from tests.builders import make_member
from tests.scenarios.formats.agent_skills_files import case, evals, skill
from tests.session_files import claude

BAD = (
    b"name: x\ntask:\n  prompt: Do it.\nevaluation:\n  gates:\n    - type: file_exist\n      path: out.txt\n"
)
GOOD = BAD.replace(b"file_exist\n", b"file_exists\n").replace(
    b"name: x", b"name: list-files\ndescription: Lists."
)


DROP = """(text) => {
    const files = new DataTransfer();
    files.items.add(new File([text], "list.yaml"));
    const event = new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true });
    document.querySelector("[data-drop]").dispatchEvent(event);
}"""


def test_an_invalid_file_is_reported_and_a_valid_one_that_is_dropped_is_stored(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/suites/")
    as_admin.locator("#file").set_input_files({"name": "list.yaml", "mimeType": "text/yaml", "buffer": BAD})
    as_admin.get_by_role("button", name="Upload").click()
    expect(as_admin.locator("#upload .problems li").first).to_be_visible()
    expect(as_admin.locator("#upload .source .here").first).to_have_text("    - type: file_exist")
    as_admin.evaluate(DROP, GOOD.decode())
    as_admin.get_by_role("button", name="Upload").click()
    expect(as_admin.get_by_text("Uploaded list, version 1")).to_be_visible()
    table = as_admin.get_by_role("region", name="Suites, table")
    expect(table.get_by_role("link", name="list")).to_be_visible()
    more = GOOD.replace(b"list-files", b"other")
    as_admin.locator("#file").set_input_files({"name": "more.yaml", "mimeType": "text/yaml", "buffer": more})
    as_admin.get_by_role("button", name="Upload").click()
    expect(table.get_by_role("link", name="more")).to_be_visible()
    Suite.objects.exclude(slug="list").delete()
    assert Suite.objects.count() == 1


@pytest.mark.slow
def test_what_was_checked_is_kept_by_one_press(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/suites/")
    as_admin.locator("#file").set_input_files({"name": "list.yaml", "mimeType": "text/yaml", "buffer": GOOD})
    as_admin.get_by_label("Check only").check()
    as_admin.get_by_role("button", name="Upload").click()
    expect(as_admin.get_by_text("saving creates version 1")).to_be_visible()
    assert Suite.objects.count() == 0
    as_admin.get_by_role("button", name="Save as version 1").click()
    expect(as_admin.get_by_text("Uploaded list, version 1")).to_be_visible()
    assert Suite.objects.count() == 1
    assert complaints == []


@pytest.mark.slow
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
    expect(plain.get_by_text("choose the same files again above")).to_be_visible()
    plain.locator("#file").set_input_files(chosen)
    plain.get_by_role("button", name="Save as version 1").click()
    expect(plain.get_by_text("Uploaded list, version 1")).to_be_visible()
    context.close()


RESULTS = b'{"test_id": "one", "score": 1.0}\n{"test_id": "two", "score": 0.1}\n'


@pytest.mark.slow
def test_results_are_previewed_then_imported_by_one_press(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/runs/import/")
    as_admin.locator("#file").set_input_files(
        {"name": "index.jsonl", "mimeType": "application/jsonl", "buffer": RESULTS}
    )
    as_admin.get_by_role("button", name="Preview").click()
    expect(as_admin.get_by_text("1 passed, 1 failed, 0 errors")).to_be_visible()
    assert Run.objects.count() == 0
    as_admin.get_by_role("button", name="Import 1 run").click()
    expect(as_admin.get_by_text("Imported index.jsonl as run")).to_be_visible()
    assert Run.objects.count() == 1
    assert complaints == []


@pytest.mark.slow
def test_a_skills_folder_is_uploaded_with_its_paths(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "notetool"
    for path, text in skill(evals(case(expected_output="A note.", files=["data/a.csv"]))).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "data").mkdir()
    (folder / "data/a.csv").write_text("1")
    as_admin.goto(f"{live_server.url}/p/tools/suites/")
    as_admin.get_by_label("Choose a folder…").set_input_files(folder)
    as_admin.get_by_role("button", name="Upload").click()
    expect(as_admin.get_by_text("Uploaded notetool, version 1")).to_be_visible()
    assert complaints == []


def test_a_file_can_be_uploaded_without_a_script(
    without_script: Page, live_server: Any, project: Any
) -> None:
    without_script.goto(f"{live_server.url}/p/tools/suites/")
    without_script.locator("#file").set_input_files(
        {"name": "list.yaml", "mimeType": "text/yaml", "buffer": GOOD}
    )
    without_script.get_by_role("button", name="Upload").click()
    expect(without_script.get_by_text("Uploaded list, version 1")).to_be_visible()


@pytest.mark.slow
def test_sessions_are_previewed_and_then_imported(
    as_admin: Page, live_server: Any, project: Any, complaints: list[str]
) -> None:
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    follow(as_admin.get_by_role("link", name="Import sessions…"))
    as_admin.get_by_label("Tool", exact=True).fill("taskmgr")
    as_admin.locator("#file").set_input_files(
        {"name": "s.jsonl", "mimeType": "application/json", "buffer": claude()}
    )
    as_admin.get_by_role("button", name="Preview").click()
    expect(as_admin.get_by_role("cell", name="no such option: --fmt")).to_be_visible()
    assert not Run.objects.exists()
    as_admin.get_by_role("button", name="Import 1 session").click()
    expect(as_admin.get_by_text("1 session that people had with an agent")).to_be_visible()
    assert complaints == []

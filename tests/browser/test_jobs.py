"""What people come for, from the project's home: each job takes at most so many presses, fields and pages."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from evalhub.teams.models import Invitation
from runs.models import Alert, Run, Target
from scenarios.models import Suite
from tests.browser.conftest import follow
from tests.builders import make_compared, make_guidance, make_suite, make_target

KEYS = ("create", "export")
SCENARIO = """name: list-files
description: Lists the files.
task: {prompt: List the files in out.txt.}
evaluation:
  gates:
    - {type: file_exists, path: out.txt}
"""


class Person:
    """Somebody at a page, whose presses and filled fields are counted."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.presses = 0
        self.fields = 0
        self.began = time.monotonic()

    def press(self, what: Locator) -> None:
        self.presses += 1
        what.click()

    def link(self, name: str) -> None:
        self.presses += 1
        follow(self.page.get_by_role("link", name=name).first)

    def button(self, name: str) -> None:
        self.press(self.page.get_by_role("button", name=name).first)

    def key(self, name: str) -> None:
        self.presses += 1
        self.page.keyboard.press(name)

    def fill(self, label: str, text: str) -> None:
        self.fields += 1
        self.page.get_by_label(label).first.fill(text)


@pytest.fixture(autouse=True)
def no_broker(settings: Any) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


@pytest.fixture
def person(as_admin: Page, live_server: Any, project: Any) -> Callable[[], Person]:
    def at_home() -> Person:
        as_admin.goto(f"{live_server.url}/p/tools/")
        return Person(as_admin)

    return at_home


@pytest.fixture
def check_effort(record_property: Any) -> Callable[..., None]:
    """Hold a job's presses and fields against the most that it may take; print them with the seconds."""

    def check(person: Person, *, presses: int, fields: int) -> None:
        seconds = time.monotonic() - person.began
        print(f"{person.presses} presses, {person.fields} fields, {seconds:.1f} s")
        record_property("seconds", round(seconds, 1))
        assert person.presses <= presses and person.fields <= fields

    return check


@pytest.mark.slow
def test_upload_a_suite(person: Any, check_effort: Any, tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text(SCENARIO)
    me = person()
    me.link("Suites")
    me.presses += 1
    me.page.locator("#file").set_input_files(tmp_path / "list.yaml")
    me.button("Upload")
    expect(me.page.get_by_text("Uploaded list, version 1")).to_be_visible()
    check_effort(me, presses=3, fields=0)
    assert Suite.objects.get().slug == "list"


@pytest.mark.slow
def test_add_an_own_agent(person: Any, check_effort: Any) -> None:
    me = person()
    me.link("Targets")
    me.link("New target")
    me.link("Your own agent")
    me.fill("Name", "mine")
    me.fill("Command", "echo {PROMPT}")
    me.button("Save")
    expect(me.page.get_by_text("Added mine. New runs can use it.")).to_be_visible()
    check_effort(me, presses=4, fields=2)
    assert Target.objects.get().name == "mine"


@pytest.mark.slow
def test_compare_two_guidance_versions(person: Any, check_effort: Any, project: Any) -> None:
    version = make_suite(project, KEYS, name="Basics")
    make_target(project, "local")
    for rule in ("poor", "good"):
        make_guidance(version.suite, rule)
    me = person()
    me.link("Guidance")
    me.link("Run good and poor")
    me.button("Start")
    expect(me.page.get_by_role("heading", level=1)).to_contain_text("good")
    check_effort(me, presses=3, fields=0)
    assert {run.guidance.name for run in Run.objects.all() if run.guidance} == {"poor", "good"}


def regress(project: Any, number: int) -> list[Alert]:
    """Return alerts, newest first, of runs whose export broke."""
    version = make_suite(project, KEYS, name="Basics")
    make_compared(version, dict.fromkeys(KEYS, "pass"), trials=6)
    before = make_compared(version, dict.fromkeys(KEYS, "pass"), trials=6)
    pinned = {"options": {"baseline": str(before.pk)}}
    broken = {"create": "pass", "export": "fail"}
    runs = [
        make_compared(version, broken, trials=6, branch=f"fix-{n}" * bool(n), **pinned) for n in range(number)
    ]
    return [Alert.objects.get(run=run) for run in reversed(runs)]


def test_find_the_cause_of_a_regression(person: Any, check_effort: Any, project: Any) -> None:
    (alert,) = regress(project, 1)
    me = person()
    me.link("See what broke")
    expect(me.page.get_by_role("heading", level=1)).to_contain_text(f"Run {alert.run_id}")
    me.link("export")
    expect(me.page.get_by_role("heading", name="Gates")).to_be_visible()
    check_effort(me, presses=2, fields=0)


@pytest.mark.slow
def test_triage_ten_regressions(person: Any, check_effort: Any, project: Any) -> None:
    alerts = regress(project, 10)
    me = person()
    me.link("Regressions")
    expect(me.page.get_by_role("heading", level=1)).to_have_text("Regressions")
    for at in range(1, len(alerts) + 1):
        me.key("j")
        me.key("a")
        expect(me.page.locator("#tabs")).to_contain_text(re.compile(rf"Acknowledged\s+{at}\b"))
    check_effort(me, presses=21, fields=0)
    assert Alert.objects.filter(state="acknowledged").count() == 10


def test_invite_a_member(person: Any, check_effort: Any) -> None:
    me = person()
    me.link("Settings")
    me.fill("E-mail (optional)", "grace@example.org")
    me.button("Invite")
    expect(me.page.get_by_label("Invitation link")).to_be_visible()
    check_effort(me, presses=2, fields=1)
    assert Invitation.objects.get().email == "grace@example.org"

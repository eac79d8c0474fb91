"""The page of a run while its trials run."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from runs.engine.recording import close_if_done
from runs.models import Run, Trial
from tests.browser.conftest import POLL_MS
from tests.builders import make_run, make_suite, make_trial


def test_counts_layers_and_dots_follow_the_run_to_its_end(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    run = make_run(make_suite(project, ("create", "export")), state="running", started=timezone.now())
    make_trial(run, "create")
    running = make_trial(run, "export", outcome="", state="running", started=timezone.now())
    as_admin.clock.install()
    as_admin.goto(f"{live_server.url}/p/tools/runs/{run.pk}/?open=create")
    table = as_admin.get_by_role("region", name="Scenarios, table")
    running_one = as_admin.locator("#progress").get_by_role("link", name="export, 1")
    running_one.focus()
    opened = table.get_by_role("link", name="export")
    Trial.objects.filter(pk=running.pk).update(activity="todo list")
    as_admin.clock.fast_forward(POLL_MS)
    expect(as_admin.get_by_role("region", name="Running trials, table")).to_contain_text("todo list")
    expect(running_one).to_be_focused()
    opened.focus()
    Trial.objects.filter(pk=running.pk).update(state="finished", outcome="fail", seconds=2.0)
    make_trial(run, "create", outcome="pass")
    make_trial(run, "export", outcome="")
    as_admin.clock.fast_forward(POLL_MS)
    expect(as_admin.get_by_text("3 of 4 trials finished")).to_have_count(2)
    expect(as_admin.locator("#trials")).to_contain_text("2 scenarios, 4 trials")
    expect(table.get_by_role("link", name="Trial 2").first).to_be_visible()
    expect(opened).to_be_focused()
    expect(as_admin.get_by_role("region", name="Running trials, table")).to_have_count(0)
    Trial.objects.filter(run=run, state="queued").update(state="finished", outcome="pass")
    Run.objects.filter(pk=run.pk).update(open=0, passed=3, failed=1)
    assert close_if_done(run.pk)
    as_admin.clock.fast_forward(POLL_MS)
    expect(as_admin.get_by_text("3 of 4 trials passed").first).to_be_visible()
    expect(as_admin.locator("#progress")).to_have_count(0)


@pytest.mark.slow
def test_a_refresh_does_not_make_the_progress_pale(as_admin: Page, live_server: Any, project: Any) -> None:
    run = make_run(make_suite(project), state="running", started=timezone.now())
    make_trial(run, outcome="", state="running", started=timezone.now())
    unanswered: list[Route] = []
    as_admin.route("**/progress/?*", lambda route: unanswered.append(route))
    as_admin.goto(f"{live_server.url}/p/tools/runs/{run.pk}/")
    progress = as_admin.get_by_role("region", name="Progress")
    expect(progress).to_contain_class("htmx-request")
    expect(progress).to_have_css("opacity", "1")
    assert unanswered

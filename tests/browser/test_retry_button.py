"""What a person presses to run errors again, and to cancel."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from playwright.sync_api import Page, expect

from runs.models import Run
from tests.builders import make_run, make_suite, make_trial


def test_errors_are_retried_the_run_is_cancelled_and_attempts_are_shown(
    as_admin: Page, live_server: Any, project: Any, settings: Any
) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    run = make_run(make_suite(project, ("create", "export")))
    make_trial(run, "create")
    made = {"error": "The agent printed nothing.", "error_kind": "agent", "worker": "host:1"}
    trial = make_trial(
        run, "export", outcome="error", started=timezone.now(), finished=timezone.now(), **made
    )
    as_admin.goto(f"{live_server.url}/p/tools/runs/{run.pk}/")
    as_admin.get_by_role("button", name="Retry errors, 1 trial").click()
    expect(as_admin.get_by_text("1 trial queued. Earlier attempts are kept.")).to_be_visible()
    expect(as_admin.get_by_text("Waiting for a worker.")).to_be_visible()
    as_admin.get_by_role("button", name="Cancel run").click()
    expect(as_admin.get_by_text(f"Cancelling run {run.pk}")).to_be_visible()
    assert Run.objects.get(pk=run.pk).state == "cancelled"
    as_admin.goto(f"{live_server.url}/p/tools/trials/{trial.pk}/")
    attempts = as_admin.get_by_role("region", name="Earlier attempts", exact=True)
    expect(attempts).to_contain_text("The agent printed nothing.")
    expect(attempts).to_contain_text("host:1")

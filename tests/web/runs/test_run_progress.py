"""A run that goes on: its progress, and its cancelling."""

from __future__ import annotations

import pytest
from django.utils import timezone

from runs.models import Trial
from tests.builders import make_project, make_run, make_trial
from tests.web.runs.pages import address, page


@pytest.fixture
def running(version):
    run = make_run(version, state="running", started=timezone.now())
    make_trial(run, "create")
    make_trial(run, "export", outcome="", state="running", started=timezone.now())
    make_trial(run, "export", outcome="")
    return run


def test_a_running_run_asks_for_its_progress_every_two_seconds(signed_in, running):
    text = page(signed_in(), running)
    assert "1 of 3 trials are done" in text
    assert f'hx-get="{address(running, "progress/")}" hx-trigger="every 2s"' in text
    assert "Cancel run" in text


def test_progress_is_a_fragment(signed_in, running):
    response = signed_in().get(address(running, "progress/"), headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert response.content.decode().lstrip().startswith("<section")


def test_progress_stops_the_polling_at_the_end(signed_in, version):
    run = make_run(version)
    make_trial(run)
    response = signed_in().get(address(run, "progress/"), headers={"HX-Request": "true"})
    assert (response.status_code, response.headers["HX-Refresh"]) == (286, "true")
    assert "every 2s" not in response.content.decode()


def test_cancelling_stops_what_waits(signed_in, running):
    assert signed_in("runner").post(address(running, "cancel/")).url == address(running)
    running.refresh_from_db()
    assert running.cancel_requested
    assert list(Trial.objects.filter(run=running, state="queued")) == []


def test_cancelling_what_is_over_says_so(signed_in, version):
    run = make_run(version)
    client = signed_in()
    response = client.post(address(run, "cancel/"), follow=True)
    assert "is over, so there is nothing to cancel." in response.content.decode()


def test_viewers_do_not_cancel(signed_in, running):
    assert signed_in("viewer").post(address(running, "cancel/")).status_code == 403


def test_cancelling_takes_a_post(signed_in, running):
    assert signed_in().get(address(running, "cancel/")).status_code == 405


def test_nobody_cancels_runs_of_another_project(signed_in, running):
    other = signed_in(of=make_project("other"))
    assert other.post(f"/p/other/runs/{running.pk}/cancel/").status_code == 404

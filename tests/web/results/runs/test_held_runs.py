"""Runs of a command (`--now`) that lives, and of one that was killed."""

from __future__ import annotations

import pytest

from runs.db.transactions import database_now
from runs.models import Launch, Run
from tests.runs.carrying import launch, suite_of
from tests.web.screen import parse

pytestmark = pytest.mark.django_db


def held(project, *, seconds: float) -> Run:
    """Return a queued run whose launch another process holds for so long."""
    run = launch(suite_of(project, create={"criteria": {"gates": []}})).runs.get()
    Launch.objects.update(held_by="elsewhere:7:ab", held_until=database_now() + seconds)
    return run


def test_the_page_says_who_runs_it(signed_in, project):
    run = held(project, seconds=60)
    client, address = signed_in("runner"), f"/p/tools/runs/{run.pk}/"
    shown = parse(client.get(address))
    assert "A command runs it by itself, without workers (elsewhere:7)." in shown
    assert "No worker is running" not in shown
    Launch.objects.update(held_until=0)
    shown = parse(client.get(address))
    assert "The command that ran it (elsewhere:7) has ended. Resume or cancel the run." in shown
    assert shown.button("Resume 1 trial")
    client.post(f"{address}resume/")
    assert Launch.objects.get().held_by == ""


def test_the_page_cancels_it_without_a_worker(signed_in, project):
    run = held(project, seconds=-1)
    Run.objects.update(state="running", started="2026-01-01T00:00:00Z")
    run.trial_set.update(state="running", token="gone", lease_until=0)
    signed_in("runner").post(f"/p/tools/runs/{run.pk}/cancel/")
    assert Run.objects.values_list("state", "cancelled", "open").get() == ("cancelled", 1, 0)

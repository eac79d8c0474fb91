"""How often a page waits for PostgreSQL: what it reads goes there together."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client

from evalhub.teams.models import ApiToken, Project
from evalhub.web.driver import connected
from runs.models import Trial
from tests.builders import close, make_member, make_run, make_suite, make_trial

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite is not waited for."),
]


@pytest.fixture
def trial(project: Project) -> Trial:
    """Return a trial of a run that is closed, as its rollups say."""
    run = make_run(make_suite(project, ("create", "export")))
    made = [make_trial(run, key) for key in ("create", "export")]
    close(run)
    return made[0]


def _trips(ask: Callable[[], int]) -> int:
    """Return how often the server is waited for once it knows the statements."""
    # Django closes the connection of a test after each request, and what it knows with it.
    connection.close_at = None
    kept = vars(connected())["statements"]
    for _ in range(2):
        before = kept.trips
        assert ask() == 200
        assert vars(connected())["statements"] is kept
    return int(kept.trips - before)


@pytest.mark.parametrize(
    ("address", "most"),
    [
        ("/p/tools/runs/", 4),
        ("/p/tools/runs/{run}/", 4),
        ("/p/tools/trials/{trial}/", 4),
        ("/p/tools/trends/", 5),
        ("/p/tools/runs/new/?suite=basics", 4),
    ],
)
def test_a_page_waits_a_few_times(
    signed_in: Callable[..., Client], trial: Trial, address: str, most: int
) -> None:
    client = signed_in()
    page = address.format(run=trial.run_id, trial=trial.pk)
    assert _trips(lambda: client.get(page).status_code) <= most


@pytest.mark.usefixtures("trial")
def test_a_list_of_runs_as_json_waits_once(project: Project) -> None:
    _, secret = ApiToken.issue(project, make_member(project), name="ci", role="viewer")
    headers = {"Authorization": f"Bearer {secret}"}
    assert _trips(lambda: Client().get("/api/v1/runs", headers=headers).status_code) == 1

"""Closing a run when the database goes away between its transactions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from runs.db.retry import retry_when_lost
from runs.engine import recording
from runs.engine.reaper import reap
from runs.models import Run
from tests.runs import carried

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_follows_a_close_is_done_after_a_lost_connection(settings, tmp_path):
    run = carried.one(carried.shell_project(), prompt="echo done").run
    settings.OUTPUT_DIR = str(tmp_path / "out")
    Run.objects.filter(pk=run.pk).update(state="running", open=0, rollups_at=None)
    seen: list[str] = []

    def lose_once(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith('UPDATE "runs_run" SET "state" = CASE'):
            seen.append("closed")
        elif seen == ["closed"] and sql.startswith("SELECT") and "baseline" in str(rest[0]):
            # Siblings that name the run as their baseline.
            seen.append("lost")
            raise OperationalError("the connection is closed")
        return execute(sql, *rest)

    with connection.execute_wrapper(lose_once):
        retry_when_lost(lambda: recording.close_if_done(run.pk))
    assert seen[:2] == ["closed", "lost"]
    assert len(list((tmp_path / "out").iterdir())) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_the_tick_does_once_what_a_lost_worker_left(settings, tmp_path, fails):
    run = carried.one(carried.shell_project(), prompt="echo done").run
    settings.OUTPUT_DIR = str(tmp_path / "out")
    long_ago = timezone.now() - timedelta(hours=1)
    Run.objects.filter(pk=run.pk).update(followed_up=False, finished=long_ago)

    def fail(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if fails and sql.startswith("SELECT") and "baseline" in str(rest[0]):
            raise ValueError("what follows fails, whatever the database does")
        return execute(sql, *rest)

    with connection.execute_wrapper(fail):
        reap()
    assert Run.objects.get(pk=run.pk).followed_up
    assert (tmp_path / "out").exists() is not fails
    settings.OUTPUT_DIR = str(tmp_path / "again")
    reap()
    assert not (tmp_path / "again").exists()

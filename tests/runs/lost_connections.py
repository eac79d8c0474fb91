"""A trial during which the database goes away for a moment at each query after its agent has begun."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from django.db import OperationalError, connection

from runs.engine.context import load_run
from runs.engine.preparation import prepare_run
from runs.engine.recording import TrialResult
from runs.engine.task import Task, load_task
from runs.engine.trial import carry_out
from runs.models import Run
from runs.workers.claims import claim_trial


def result_with_lost_connections(run: Run) -> tuple[TrialResult, set[str]]:
    """Prepare a run and execute its next trial; return the result and the queries that failed once."""
    assert prepare_run(run.pk), Run.objects.get(pk=run.pk).error
    claim = claim_trial(run.pk)
    assert claim is not None
    lost: set[str] = set()

    def fail_once(
        query: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if sql in lost:
            return query(sql, params, many, context)
        lost.add(sql)
        raise OperationalError("the connection is lost")

    with ExitStack() as failing:

        def load() -> Task:
            task = load_task(claim, load_run(run.pk))
            failing.enter_context(connection.execute_wrapper(fail_once))
            return task

        return carry_out(load, stopped=lambda: False, name="trial"), lost

"""Launches of commands (`--now`) that were killed: workers take over what they can have the variables for."""

from __future__ import annotations

import logging

from runs.engine.context import load_run
from runs.engine.workspace.tool_variables import refuse_missing
from runs.errors import ProviderError, RequestError
from runs.models import Launch, Run
from runs.models.run import OPEN
from runs.workers import holds

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 20
"""Most launches that one tick looks at."""


def take_abandoned() -> None:
    """Leave launches whose process is gone to workers, if this one could run them. Safe to repeat."""
    for launch in holds.abandoned_launches().order_by("pk")[:MOST_AT_ONCE]:
        runs = Run.objects.filter(launch=launch, state__in=OPEN).values_list("pk", flat=True)
        problem = next(filter(None, map(_problem, runs)), "")
        if problem:
            logger.info("launch %s stays for its command to be resumed: %s", launch.pk, problem)
        else:
            holds.leave_to_workers(Launch.objects.filter(pk=launch.pk))


def _problem(run_id: int) -> str:
    """Return why this process can't run a run, such as a variable that only its command had; empty if it can."""
    try:
        context = load_run(run_id)
        for tool, _ in context.tools:
            refuse_missing(tool.env, context.variables)
        _ = context.complete
    except (ProviderError, RequestError) as error:
        return str(error)
    return ""

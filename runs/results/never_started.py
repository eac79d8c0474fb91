"""Say that the agents of a run called the tool and it never started: it isn't where the guidance says."""

from __future__ import annotations

from typing import Any

import msgspec
from django.db.models import F, QuerySet

from evaluators.tool_use.not_started import NotStarted, describe_not_started
from evaluators.tool_use.tool import Tool
from runs.models import Trial
from runs.models.trial import TrialState

FIRST_TRIALS = 3
"""So many trials of a run decide that its tool never starts; all of a shorter run."""


def describe_tool_not_started(run: int) -> str:
    """Return in how many trials of a run no call of the tool started, in sentences.

    Empty unless the first three finished trials, or all of fewer, called the tool and no call of it started. One query,
    one more if so.
    """
    rows = list(_finished(run).values_list("detail__not_started", flat=True))
    if not rows or not all(rows[:FIRST_TRIALS]):
        return ""
    tool = Tool.model_validate(
        _finished(run).values_list("scenario_version__content__criteria__tool", flat=True).first() or {}
    )
    found = [msgspec.convert(row, NotStarted) for row in rows if row]
    return describe_not_started(found, tool.title, len(rows))


def describe_if_never_started(run: int) -> str:
    """Return what `describe_tool_not_started` does once exactly the first three trials have finished; empty before and after."""
    finished = list(_finished(run).values_list("detail__not_started", flat=True)[: FIRST_TRIALS + 1])
    return describe_tool_not_started(run) if len(finished) == FIRST_TRIALS and all(finished) else ""


def _finished(run: int) -> QuerySet[Trial, Any]:
    finished = Trial.objects.filter(run=run, round=0, state=TrialState.FINISHED)
    return finished.order_by(F("finished").asc(nulls_last=True), "pk")

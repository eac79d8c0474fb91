"""Finished runs of the past, with trials and rollups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runs.models import Run
from scenarios.models import SuiteVersion
from tests.builders import close, make_run, make_trials


def past_run(
    version: SuiteVersion,
    outcomes: dict[str, Sequence[str]] | None = None,
    *,
    cost_usd: float | None = 0.1,
    judge_usd: float = 0.0,
    seconds: float = 10.0,
    **changes: Any,
) -> Run:
    """Return a closed run with trials of these outcomes by scenario, one pass of each unless they are given."""
    entries = version.entries.select_related("scenario_version__scenario")
    outcomes = outcomes or {entry.scenario_version.scenario.key: ("pass",) for entry in entries}
    run = make_run(version, **changes)
    make_trials(run, outcomes, cost_usd=cost_usd, seconds=seconds)
    done = sum(map(len, outcomes.values()))
    run.cost_usd = None if cost_usd is None and not judge_usd else (cost_usd or 0.0) * done + judge_usd
    run.save()
    return close(run)

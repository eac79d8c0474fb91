"""Plan further trials of runs that are compared, each with its own run's configuration."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from evalhub.teams.models import Project
from runs.errors import NothingToRun, RequestError
from runs.launch.request import PlannedRun
from runs.launch.selection import check_judge, find_target, scenarios_of, select_scenarios
from runs.models import Run
from runs.models.run_options import RunOptions, Selection

MOST_MORE = 100
"""The most further trials of a scenario at once."""


def plan_more_trials(
    project: Project, runs: Sequence[Run], keys: Collection[str], trials: int
) -> list[PlannedRun]:
    """Return what each run would run again, with its suite version, target, model and guidance.

    Raises `RequestError` if one of them can't run or lacks a scenario.
    """
    if not keys:
        raise NothingToRun("Select at least one scenario that both runs have.")
    return [_plan_run(project, run, keys, trials) for run in runs]


def _plan_run(project: Project, run: Run, keys: Collection[str], trials: int) -> PlannedRun:
    version = run.suite_version
    try:
        find_target(project, run.target.name)
    except RequestError as error:
        raise RequestError(f"Run {run.pk} can't get more trials. {error}") from error
    check_judge(project, RunOptions.model_validate(run.options))
    scenarios = select_scenarios(scenarios_of(version), Selection(only=tuple(keys)), version.suite.name)
    return PlannedRun(run, scenarios, trials)

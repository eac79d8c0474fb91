"""Plan further trials of runs that are compared, each with its own run's configuration."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.teams.models import Project
from evaluators.statistics.looks import first_size
from runs.errors import NothingToRun, RequestError
from runs.launch.arms import pair
from runs.launch.request import PlannedRun, Request, store_launch
from runs.launch.selection import check_judge, find_target, scenarios_of, select_scenarios
from runs.models import Launch, Run
from runs.models.run import Trigger
from runs.models.run_options import RunOptions, Selection

MOST_MORE = 100
"""The most further trials of a scenario at once."""

Planned = tuple[PlannedRun, Request]


def plan_more_trials(
    project: Project, runs: Sequence[Run], keys: Collection[str], trials: int, *, until_decided: bool = False
) -> list[Planned]:
    """Return one planned run for each run, with its suite version, target, model, guidance and options.

    With `until_decided`, `trials` are the most further ones of each scenario, and the runs are those of the first look.

    Raises `RequestError` if one of them can't run or lacks a scenario.
    """
    if not keys:
        raise NothingToRun("Select at least one scenario that both runs have.")
    return [_plan_run(project, run, keys, trials, until_decided=until_decided) for run in runs]


def _plan_run(
    project: Project, run: Run, keys: Collection[str], trials: int, *, until_decided: bool
) -> Planned:
    version = run.suite_version
    try:
        target = find_target(project, run.target.name)
    except RequestError as error:
        raise RequestError(f"Run {run.pk} can't get more trials. {error}") from error
    options = (
        RunOptions.model_validate(run.options)
        .without_looks()
        .model_copy(
            update={
                "trials": first_size(trials) if until_decided else trials,
                "until_decided": until_decided,
                "max_trials": trials if until_decided else None,
                "experiment": True,
                "baseline": "",
            }
        )
    )
    check_judge(project, options)
    selection = Selection(only=tuple(keys))
    request = Request(
        [version],
        targets=[target.name],
        models=[run.model] if run.model else [],
        guidance=[run.guidance] if run.guidance else [],
        selection=selection,
        options=options,
        branch=run.branch,
        commit=run.commit,
        tags=run.tags,
        more_of=run.pk,
    )
    scenarios = select_scenarios(scenarios_of(version), selection, version.suite.name)
    concurrency = options.concurrency or target.workers or 1
    return PlannedRun(
        version, target, run.model, run.guidance, scenarios, options.trials, concurrency
    ), request


@transaction.atomic
def request_more_trials(project: Project, planned: Sequence[Planned], *, by: User | None) -> Launch:
    """Queue the planned trials in one launch, so that lanes take both runs' trials in turn."""
    launch = store_launch(project, planned, by=by, trigger=Trigger.CONFIRM)
    if planned[0][1].options.until_decided:
        pair(*launch.runs.order_by("pk"))
    return launch

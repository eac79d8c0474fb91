"""Run a suite twice with nothing changed (A/A), to measure how much of its results is chance."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from runs.errors import RequestError
from runs.launch.request import Request, plan, request_runs
from runs.models import Run
from runs.models.run import Trigger
from runs.models.run_options import RunOptions
from scenarios.models import SuiteVersion


@transaction.atomic
def request_aa_pair(
    version: SuiteVersion, target: str, *, trials: int, by: User | None, trigger: Trigger, wake: bool = True
) -> tuple[Run, Run]:
    """Queue two equal runs as experiments, the second compared with the first. Raises `RequestError`."""
    project = version.suite.project
    names = [target] if target else []

    def request(baseline: str = "") -> Request:
        return Request(
            [version], names, options=RunOptions(trials=trials, experiment=True, baseline=baseline)
        )

    if len(plan(project, request())) != 1:
        raise RequestError(
            "An A/A pair is of one target and model. Choose a target that runs every scenario."
        )
    first = request_runs(project, request(), by=by, trigger=trigger, wake=wake).runs.get()
    second = request_runs(project, request(str(first.pk)), by=by, trigger=trigger, wake=wake).runs.get()
    return first, second

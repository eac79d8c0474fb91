"""Runs until a verdict whose trials end as a test says, without agents."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any

from runs.compare.looks import looks_of
from runs.engine import recording
from runs.launch.request import Request, request_runs
from runs.models import Launch, Run, Trial
from runs.models.run import Trigger
from runs.models.run_options import RunOptions
from runs.workers import claims
from scenarios.models import SuiteVersion
from tests.builders import make_project, make_suite, make_target
from tests.runs.carrying import NO_GATES, passed, start

KEYS = ("add", "create", "delete", "export", "list")
Outcome = Callable[[Run, str], str]


def suite(keys: Sequence[str] = KEYS, provider: str = "mock") -> SuiteVersion:
    """Return a suite of a project with a target."""
    project = make_project()
    make_target(project, provider=provider, definition={"name": "local", "provider": provider})
    return make_suite(project, keys, **NO_GATES)


def failing(*keys: str, cost_usd: float | None = None) -> Callable[[Run, str], Any]:
    """Return what trials end as when these scenarios are broken."""
    return lambda _, key: passed(outcome="fail" if key in keys else "pass", cost_usd=cost_usd)


def requested(version: SuiteVersion, *, guidance: Sequence[Any] = (), **options: Any) -> Launch:
    """Return a launch whose trials may start."""
    request = Request([version], guidance=guidance, options=RunOptions(**options))
    launch = request_runs(version.suite.project, request, by=None, trigger=Trigger.CLI, wake=False)
    for run in launch.runs.order_by("pk"):
        start(run)
    return launch


def carry(runs: Collection[Run], result: Callable[[Run, str], Any], most: int = 10_000) -> int:
    """Record trials of the runs in turn until none is queued; return how many."""
    done, idle = 0, 0
    turns = itertools.cycle(runs)
    while done < most and idle < len(runs):
        run = next(turns)
        claim = claims.claim_trial(run.pk)
        idle = 0 if claim else idle + 1
        if claim is not None:
            key = Trial.objects.values_list("scenario__key", flat=True).get(pk=claim.trial_id)
            assert recording.record_result(claim, result(run, key))
            done += 1
    return done


def ran(version: SuiteVersion, result: Callable[[Run, str], Any], **options: Any) -> Run:
    """Return a run of the suite whose trials have ended."""
    launch = requested(version, **options)
    carry(list(launch.runs.order_by("pk")), result)
    return launch.runs.select_related("project").get()


def trials_by_key(run: Run) -> dict[str, int]:
    """Return how many trials of each scenario have ended."""
    keys = list(Trial.objects.filter(run=run, state="finished").values_list("scenario__key", flat=True))
    return {key: keys.count(key) for key in sorted(set(keys))}


def decisions(run: Run) -> list[str]:
    """Return what followed each look."""
    return [each.decision.value for each in looks_of(Run.objects.get(pk=run.pk))]

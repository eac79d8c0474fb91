"""Stored runs for tests that claim, carry and record them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connections

from evalhub.teams.models import Project
from evaluators.model import AgentResult
from runs.db.transactions import write_transaction
from runs.engine import lanes, recording
from runs.engine.reaper import reap
from runs.engine.recording import TrialResult
from runs.launch.request import Request, request_runs
from runs.models import Launch, Run, Target, Trial
from runs.models.run import RunState, Trigger
from runs.models.run_options import RunOptions
from runs.workers import claims
from scenarios.models import SuiteVersion
from tests.builders import make_project, make_suite, make_target, spec_content

NO_GATES: dict[str, Any] = {"criteria": {"gates": []}}


def launch(
    version: SuiteVersion | None = None,
    *,
    targets: Sequence[str] = (),
    trials: int = 1,
    judge_model: str = "",
    **changes: Any,
) -> Launch:
    """Return a stored launch of a suite whose scenarios ask for nothing; nobody is woken."""
    if version is None:
        project = Project.objects.filter(slug="tools").first() or make_project()
        version = make_suite(project, **NO_GATES)
    project = version.suite.project
    if not Target.objects.filter(project=project).exists():
        make_target(project)
    concurrency = changes.pop("concurrency", None)
    request = Request(
        [version],
        targets=targets,
        options=RunOptions(trials=trials, concurrency=concurrency, judge_model=judge_model),
        **changes,
    )
    return request_runs(project, request, by=None, trigger=Trigger.CLI, wake=False)


def running(version: SuiteVersion | None = None, **changes: Any) -> Run:
    """Return a run whose trials may start."""
    run = launch(version, **changes).runs.get()
    start(run)
    return Run.objects.select_related("target").get(pk=run.pk)


def start(run: Run) -> None:
    """Let a run's trials start, without the checks of its preparation."""
    with write_transaction():
        Run.objects.filter(pk=run.pk).update(state="running")
        claims.make_slots(run)


def claimed(run: Run) -> claims.Claim:
    """Return a claim of the run's next trial."""
    claim = claims.claim_trial(run.pk)
    assert claim is not None
    return claim


def lose(claim: claims.Claim, *, starts: int | None = None) -> None:
    """Let the claim's lease be over, as if its worker had been killed."""
    values: dict[str, Any] = {"lease_until": 1.0}
    if starts is not None:
        values["starts"] = starts
    Trial.objects.filter(pk=claim.trial_id).update(**values)


def lapse(run: Run) -> None:
    """Let the lease of the run's preparation be over, as if its worker had been killed."""
    Run.objects.filter(pk=run.pk, state=RunState.PREPARING).update(lease_until=1.0)


def lose_preparations(run: Run, times: int) -> None:
    """Begin the run's preparation so often, and lose its worker each time."""
    for _ in range(times):
        assert claims.claim_run(run.pk)
        lapse(run)
        reap()


def passed(seconds: float = 1.0, **changes: Any) -> TrialResult:
    """Return the result of a trial that passed."""
    facts = {name: changes.pop(name) for name in ("answer", "cost_usd", "usage") if name in changes}
    execution = AgentResult(exit_code=0, seconds=seconds, **facts)
    return TrialResult(**{"outcome": "pass", "execution": execution, **changes})


def suite_of(project: Project, **contents: dict[str, Any]) -> SuiteVersion:
    """Return a suite with these scenarios, each with what its content differs in."""
    version = make_suite(project, list(contents))
    for entry in version.entries.select_related("scenario_version__scenario"):
        scenario_version = entry.scenario_version
        key = scenario_version.scenario.key
        scenario_version.content = spec_content(key, **{**NO_GATES, **contents[key]})
        scenario_version.save(update_fields=["content"])
    return version


SHELL_AGENT = {
    "name": "shell",
    "provider": "cli",
    # The prompt is the agent's script.
    "command_template": "EVENTS={EVENTS_FILE} sh -c {PROMPT}",
}


def shell_target(project: Project, **changes: Any) -> Target:
    """Return a target whose agent does what the prompt says."""
    definition = {**SHELL_AGENT, **changes}
    return Target.objects.create(
        project=project, name=definition["name"], provider=definition["provider"], definition=definition
    )


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[None]:
    """Do the work in another thread meanwhile; the block waits for its end."""

    def working() -> None:
        try:
            work()
        finally:
            connections.close_all()

    worker = threading.Thread(target=working)
    worker.start()
    try:
        yield
    finally:
        worker.join(20)


@contextmanager
def carrying(run: Run) -> Iterator[None]:
    """Carry a run's trials meanwhile; the block cancels it."""
    with beside(lambda: lanes.run_lane(run.pk)):
        try:
            yield
        finally:
            recording.cancel_run(run.pk)

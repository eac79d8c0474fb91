"""Sharing lanes: how soon a small run begins beside a big one, and what a big one alone gets done."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.figures import MANAGE, Figure, run, suite
from tests.bench.workers import evalhub_up

SCENARIOS = 5
BIG, SMALL = 5000 // SCENARIOS, 3
"""Trials of each scenario; the small run has one scenario."""
TRIAL_SECONDS = 0.2
BEGINS_WITHIN = 3.0 + TRIAL_SECONDS
SLOW = f"targets:\n  - {{name: agent, provider: mock, delay_ms: {1000 * TRIAL_SECONDS:.0f}}}\n"
INSTANT = "targets:\n  - {name: agent, provider: mock, response: done}\n"
_PROJECTS = "from evalhub.teams.models import Project; [Project.objects.create(slug=s, name=s) for s in ('big', 'small')]"
_FIRST = """
from django.db.models import Min
from runs.models import Run
run = Run.objects.annotate(first=Min("trial_set__started")).get(project__slug="small")
print((run.first - run.created).total_seconds())
"""
_SPEED = """
from runs.models import Run
run = Run.objects.get()
print(run.trials / (run.finished - run.started).total_seconds())
"""


@contextmanager
def _lanes(number: int) -> Iterator[None]:
    os.environ["EVALHUB_WORKER_THREADS"] = str(number)
    try:
        yield
    finally:
        del os.environ["EVALHUB_WORKER_THREADS"]


def _request(data: Path, scenario: Path, targets: Path, project: str, trials: int, *more: str) -> None:
    command = [*MANAGE, "run_scenarios", str(scenario), "--targets", str(targets), "--target", "agent"]
    json.loads(run([*command, "--project", project, "--trials", str(trials), "--json", *more], data).output)


def _five(scenario: Path) -> Path:
    """Return a suite of five scenarios like this one."""
    folder = scenario.parent / "five"
    folder.mkdir()
    for n in range(SCENARIOS):
        text = scenario.read_text().replace("name: trivial", f"name: trivial-{n}")
        (folder / f"{n}.yaml").write_text(text)
    return folder


def _asked(data: Path, question: str) -> float:
    return float(run([*MANAGE, "shell", "--no-imports", "-c", question], data).output)


def fairness() -> Iterator[Figure]:
    """Seconds until a run of 3 trials begins beside one of 5,000; trials a second of a big run alone."""
    for lanes in (8, 24):
        with _lanes(lanes), suite(SLOW) as (data, scenario, targets), evalhub_up(data):
            run([*MANAGE, "shell", "--no-imports", "-c", _PROJECTS], data)
            _request(data, _five(scenario), targets, "big", BIG, "--concurrency", "24")
            _request(data, scenario, targets, "small", SMALL, "--wait")
            yield Figure(
                f"a small run begins beside 5,000 trials, {lanes} lanes",
                _asked(data, _FIRST),
                "s",
                BEGINS_WITHIN,
            )
    for lanes in (8, 24):
        with _lanes(lanes), suite(INSTANT) as (data, scenario, targets), evalhub_up(data):
            _request(data, _five(scenario), targets, "default", BIG, "--concurrency", "24", "--wait")
            yield Figure(
                f"5,000 mock trials by a worker, {lanes} lanes", _asked(data, _SPEED), "/s", 300.0, more=True
            )

"""Trials that one lane in this process has carried to their end."""

from __future__ import annotations

from typing import Any

from evalhub.teams.models import Project
from runs.engine import run_here
from runs.models import Trial
from tests.builders import make_project
from tests.runs.carrying import launch, shell_target, suite_of

GOOD = {"prompt": "echo fine"}


def shell_project() -> Project:
    """Return a project whose only target runs the prompt in a shell."""
    made = make_project("default")
    shell_target(made)
    return made


def carried(project: Project, **contents: dict[str, Any]) -> dict[str, Trial]:
    """Carry these scenarios one after another in one lane, and then a good one; return the trials by key."""
    version = suite_of(project, **contents, zz_afterwards=GOOD)
    run = launch(version, targets=["shell"]).runs.get()
    run_here.run_here(run.launch)
    run.refresh_from_db()
    assert run.state == "finished", run.error
    trials = {trial.scenario.key: trial for trial in run.trial_set.select_related("scenario")}
    last = trials.pop("zz_afterwards")
    assert (last.outcome, last.answer.strip()) == ("pass", "fine"), last.error
    return trials


def one(project: Project, **content: Any) -> Trial:
    """Carry one scenario, and then a good one; return its trial."""
    (trial,) = carried(project, bad=content).values()
    return trial

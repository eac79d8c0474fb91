"""A suite on a target that got worse, and the confirmation of its alert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalhub.teams.models import Project
from runs.engine.run_here import run_here
from runs.launch.confirmation import start_confirmation
from runs.models import Alert, Launch, Run, Target
from tests.runs.carrying import launch, suite_of

WANTED = {"criteria": {"expect": {"response_contains": ["done"]}}}


def answers(project: Project, response: str, **changes: Any) -> Target:
    """Make a target of the project answer this from now on; "done" passes."""
    definition = {"name": "local", "provider": "mock", "response": response, **changes}
    values = {"provider": "mock", "definition": definition}
    return Target.objects.update_or_create(project=project, name=definition["name"], defaults=values)[0]


def carried(version: Any, trials: int = 6) -> Run:
    """Return a run of the suite that this process carried out."""
    started = launch(version, trials=trials)
    run_here(started)
    return Run.objects.get(launch=started)


def regressed(project: Project, keys: Sequence[str] = ("create", "export"), **changes: Any) -> Alert:
    """Return the alert of a run whose target's definition got worse."""
    version = suite_of(project, **dict.fromkeys(keys, WANTED))
    answers(project, "done", **changes)
    carried(version)
    answers(project, "I can't.", **changes)
    return Alert.objects.get(run=carried(version))


def confirmed(alert: Alert) -> tuple[Alert, Launch]:
    """Confirm an alert in this process."""
    started = start_confirmation(alert, by=None)
    run_here(started)
    alert.refresh_from_db()
    return alert, started

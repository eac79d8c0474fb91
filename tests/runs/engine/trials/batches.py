"""Runs on targets that want batches, and how far they came."""

from __future__ import annotations

from runs.engine import lanes
from runs.models import Job, Run, Target
from tests.builders import make_project
from tests.runs.carrying import launch, suite_of

KINDS = ("litellm", "azure", "anthropic")
KEY = "sk-of-the-tests-0123456789"
CITIES = {"france": "Paris.", "spain": "Madrid.", "italy": "Rome."}


def definition(server, kind: str) -> dict:
    own = {
        "litellm": {"model": "openai/gpt-4o-mini", "base_url": f"{server.url}/v1"},
        "azure": {"deployment": "gpt-4o-mini", "endpoint": server.url},
        "anthropic": {"model": "claude-sonnet-4-5", "base_url": server.url},
        "gemini": {"base_url": server.url},
    }[kind]
    quick = {"retry_initial_delay_ms": 1, "retry_max_delay_ms": 5}
    return {"name": "model", "provider": kind, "api_key": "${{ MODEL_KEY }}", **own, **quick}


def batch_run(server, kind: str = "litellm", *, trials: int = 1, **changes) -> Run:
    """Return a stored run of three questions on a target that wants batches."""
    # The embedded project, whose targets may refer to every variable.
    project = make_project("default")
    fields = {**definition(server, kind), "provider_batching": True, **changes}
    Target.objects.create(project=project, name="model", provider=kind, definition=fields)
    version = suite_of(project, **{city: {"prompt": city} for city in CITIES})
    return launch(version, trials=trials).runs.get()


def let_a_look_be_due(run: Run) -> None:
    Job.objects.filter(kind="batch", subject=run.pk).update(due=1.0)


def carried(run: Run) -> Run:
    """Carry the run to where its batch ended."""
    for _ in range(5):
        let_a_look_be_due(run)
        lanes.run_lane(run.pk)
    return Run.objects.get(pk=run.pk)


def answers(run: Run) -> dict[str, str]:
    rows = run.trial_set.select_related("scenario")
    return {f"{trial.scenario.key}-{trial.index}": trial.answer for trial in rows}


def notes(run: Run) -> list[str]:
    return [note for trial in run.trial_set.all() for note in trial.detail["notes"]]

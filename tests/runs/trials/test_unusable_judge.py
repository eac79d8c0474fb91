"""A judge's answers cost money, usable or not."""

from __future__ import annotations

import pytest

from runs.execution import run_here
from runs.models import Target
from tests.builders import make_project
from tests.runs.carrying import launch, suite_of

pytestmark = pytest.mark.django_db(transaction=True)
CRITERION = {"id": "good", "description": "It is good.", "weight": 1.0}
RUBRIC = {"name": "r", "criteria": [CRITERION]}


def test_unusable_answers_are_paid_for():
    project = make_project()
    for name, more in (("local", {"cost_usd": 0.5}), ("judge", {"response": "I like it.", "cost_usd": 0.25})):
        definition = {"name": name, "provider": "mock", **more}
        Target.objects.create(project=project, name=name, provider="mock", definition=definition)
    criteria = {"gates": [], "judge": {"rubric": RUBRIC, "model": "judge", "pass_threshold": 0.5}}
    run = launch(suite_of(project, one={"criteria": criteria}), targets=["local"]).runs.get()
    run_here.run_here(run.launch)
    trial = run.trial_set.get()
    assert trial.outcome == "error"
    assert "The judge's answer was unusable" in trial.error
    assert trial.judgings.get().cost_usd == 0.5
    run.refresh_from_db()
    assert run.cost_usd == 1.0

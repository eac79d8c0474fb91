"""A run's trials are judged alike, whoever edits a judge meanwhile."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from evalhub.teams.models import Project
from runs.engine import lanes, preparation, run_here
from runs.models import Run, Target
from scenarios.models import SuiteVersion
from tests.builders import make_project
from tests.runs.carrying import launch, shell_target, suite_of

pytestmark = pytest.mark.django_db(transaction=True)

RUBRIC = {"criteria": [{"id": "quality", "weight": 1.0}]}
JUDGED: dict[str, Any] = {"judge": {"rubric": RUBRIC, "pass_threshold": 0.5}}
NAMED: dict[str, Any] = {"judge": {**JUDGED["judge"], "model": "named"}}
GRADED: dict[str, Any] = {"evaluators": [{"name": "grade", "type": "llm_judge", "model": "named"}]}


def _answer(score: float) -> dict[str, Any]:
    """Return what a judge and an evaluator understand."""
    scores = {"scores": {"quality": score}, "weighted_score": score, "confidence": 1.0, "score": score}
    return {"response": json.dumps({**scores, "issues": [], "highlights": [], "hits": [], "misses": []})}


def _judge(project: Project, name: str) -> Target:
    definition = {"name": name, "provider": "mock", **_answer(1.0)}
    return Target.objects.create(project=project, name=name, provider="mock", definition=definition)


def _edit(judge: Target) -> None:
    judge.definition = {**judge.definition, **_answer(0.0)}
    judge.save()


def _judged(run: Run) -> list[float]:
    """Return what the judge's score was in each trial that has ended."""
    ended = run.trial_set.filter(state="finished").order_by("position").values_list("scores", flat=True)
    return [
        next(each["value"] for each in scores if each["layer"] in ("judge", "evaluators")) for scores in ended
    ]


def _suite(project: Project, criteria: dict[str, Any]) -> SuiteVersion:
    return suite_of(project, a={"prompt": "true", "criteria": criteria})


@pytest.mark.parametrize(
    ("criteria", "name"), [(JUDGED, "own"), (NAMED, "named")], ids=["target's", "scenario's"]
)
def test_a_judge_is_asked_as_it_was_when_the_run_was_prepared(criteria: dict[str, Any], name: str) -> None:
    project = make_project()
    judge = _judge(project, name)
    shell_target(project, judge_target="own")
    version = _suite(project, criteria)
    run = launch(version, targets=["shell"]).runs.get()
    assert preparation.prepare_run(run.pk)
    _edit(judge)
    lanes.run_lane(run.pk)
    assert _judged(run) == [1.0]
    again = launch(version, targets=["shell"]).runs.get()
    run_here.run_here(again.launch)
    assert _judged(again) == [0.0]
    assert [each.definition for each in again.judge_versions.all()] == [judge.definition]
    assert judge.versions.count() == 2


def test_an_evaluators_own_judge_is_pinned_too() -> None:
    project = make_project()
    judge = _judge(project, "named")
    shell_target(project)
    run = launch(_suite(project, GRADED), targets=["shell"], trials=2).runs.get()
    assert preparation.prepare_run(run.pk)
    assert not run.judge_versions.exists()
    # One trial, as time is over after it.
    lanes.run_lane(run.pk, until=time.monotonic())
    assert _judged(run) == [1.0]
    _edit(judge)
    lanes.run_lane(run.pk)
    assert _judged(run) == [1.0, 1.0]


def test_a_run_without_judging_keeps_none() -> None:
    project = make_project()
    _judge(project, "own")
    shell_target(project, judge_target="own")
    run = launch(_suite(project, JUDGED), targets=["shell"]).runs.get()
    run.options = {**run.options, "judge": False}
    run.save()
    assert preparation.prepare_run(run.pk)
    assert not run.judge_versions.exists()

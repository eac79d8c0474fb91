"""`POST /runs` where nothing could judge."""

from __future__ import annotations

from django.utils import timezone

from runs.models import Run, Worker
from tests.builders import make_suite, make_target

RUBRIC = {"criteria": [{"id": "good", "weight": 1.0, "description": "Is it good?"}]}


def test_it_is_refused_in_one_sentence_and_starts_without_a_judge(api, project):
    make_target(project)
    judged = {"gates": [], "judge": {"rubric": RUBRIC, "pass_threshold": 0.7}}
    version = make_suite(project, ["create"], name="Basics", criteria=judged)
    Worker.objects.create(name="w", seen=timezone.now())
    body = {"suites": [version.suite.slug], "targets": ["local"]}
    answer = api("runner").post("/runs", body)
    assert (answer.status_code, answer.json()["id"]) == (422, "run/no-judge")
    assert "nothing names a judge (create): name one with --judge-model" in answer.json()["detail"]
    assert not Run.objects.exists()
    assert api("runner").post("/runs", {**body, "judge": False}).status_code == 202

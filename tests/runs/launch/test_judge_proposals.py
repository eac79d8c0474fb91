"""A target that no admin has accepted judges nothing, and the request says so."""

from __future__ import annotations

import pytest
from django.test import Client

from evalhub.teams.models import ApiToken
from runs.errors import UnknownTarget
from runs.launch.request import Request, plan
from runs.models import Run, Target
from runs.models.run_options import RunOptions
from tests.builders import make_member, make_suite, make_target
from tests.static_files import plain_static_files  # noqa: F401  # a fixture


def asked(project, named, **more):
    version = make_suite(project)
    return plan(project, Request([version], options=RunOptions(judge_model=named, **more)))


def test_a_proposed_target_cannot_be_asked_to_judge(project):
    make_target(project)
    make_target(project, "grader", accepted=False)
    with pytest.raises(UnknownTarget, match=r"The target 'grader' is a proposal\. Ask an admin to accept it"):
        asked(project, "grader")
    assert asked(project, "grader", judge=False)


def test_a_target_that_only_does_tasks_cannot_be_asked_to_judge(project):
    make_target(project)
    Target.objects.create(project=project, name="coder", provider="codex", definition={})
    with pytest.raises(UnknownTarget, match=r"'coder' can't judge: codex only does tasks\. Choose a model"):
        asked(project, "coder")


def test_a_proposal_does_not_hide_a_model(project):
    make_target(project)
    make_target(project, "openai/large", accepted=False)
    assert asked(project, "openai/large")


def test_rest_refuses_a_proposed_judge_with_the_request(project):
    make_target(project)
    make_target(project, "grader", accepted=False)
    suite = make_suite(project, name="Basics").suite
    _, secret = ApiToken.issue(project, make_member(project, "runner"), name="t", role="runner")
    headers = {"Authorization": f"Bearer {secret}"}
    body = {"suites": [suite.slug], "judge_model": "grader"}
    response = Client(headers=headers).post("/api/v1/runs", body, content_type="application/json")
    assert (response.status_code, response.json()["id"]) == (422, "request/unknown-target")
    assert not Run.objects.exists()

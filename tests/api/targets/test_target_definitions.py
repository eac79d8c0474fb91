"""Targets defined and tried over REST."""

from __future__ import annotations

import threading

import pytest
from django.db import connections

from runs import tasks
from runs.models import Target, TargetTry
from runs.workers.worker_names import worker_name
from tests.builders import make_target
from tests.runs.jobs import do_job

MOCK = {"definition": {"name": "local", "provider": "mock", "response": "hi"}}


class AtOnce:
    """Does a job while the request waits for it, in place of Celery."""

    def send_task(self, name: str, args: tuple[int, ...]) -> None:
        assert name == "runs.tasks.do_job"
        threading.Thread(target=do_task, args=args).start()


def do_task(job_id: int) -> None:
    try:
        tasks.do_job(job_id)
    finally:
        connections.close_all()


at_once = AtOnce()


@pytest.mark.django_db(transaction=True)
def test_who_waits_for_a_try_learns_who_made_it(api, project, settings):
    settings.CELERY_APP = f"{__name__}.at_once"
    make_target(project, "local")
    found = api("runner").post("/target-tries?wait=20", {"target": "local", "prompt": "Go"}).json()
    assert (found["state"], found["worker"]) == ("finished", worker_name())


def test_a_target_is_added_and_replaced(api):
    assert api("author").post("/targets", MOCK).json()["accepted"] is True
    changed = {"definition": {**MOCK["definition"], "workers": 3}}
    assert api("admin").put("/targets/local", changed).json()["workers"] == 3
    assert Target.objects.get().definition == changed["definition"]


@pytest.mark.parametrize(
    ("definition", "id"),
    [
        ({"name": "new", "provider": "mok"}, "targets/unknown-provider"),
        ({"name": "new", "provider": "cli", "command_template": "x", "cwd": "/etc"}, "targets/path"),
        ({"name": "taken", "provider": "mock"}, "targets/repeated-name"),
    ],
    ids=["provider", "path", "taken"],
)
def test_an_invalid_definition_has_its_problems(api, project, definition, id):
    make_target(project, "taken")
    answer = api("author").post("/targets", {"definition": definition})
    assert answer.status_code == 422
    assert [each["id"] for each in answer.json()["problems"]] == [id]


def test_a_server_takes_proposals_only(api, project, served):
    make_target(project, "taken")
    assert api("admin").post("/targets", MOCK).json()["accepted"] is False
    assert api("admin").put("/targets/local", MOCK).status_code == 200
    assert api("admin").put("/targets/taken", MOCK).json()["id"] == "target/in-use"
    assert api("admin").post("/target-tries?wait=0", MOCK).json()["id"] == "target/not-stored"


def test_a_stored_target_is_tried_without_a_trial(api, project, served):
    make_target(project)
    client = api("runner")
    waiting = client.post("/target-tries?wait=0", {"target": "local", "prompt": "Go"})
    assert (waiting.status_code, waiting.json()["state"]) == (202, "waiting")
    do_job(TargetTry.objects.get())
    found = client.get(waiting.json()["url"].removeprefix("/api/v1")).json()
    assert (found["state"], found["result"]["exit_code"], found["result"]["call_count"]) == ("finished", 0, 0)


def test_a_definition_is_tried_in_an_embedded_evalhub(api):
    assert api("runner").post("/target-tries?wait=0", MOCK).status_code == 403
    assert api("author").post("/target-tries?wait=0", MOCK).status_code == 202


@pytest.mark.parametrize("given", [{}, {"target": "local", **MOCK}], ids=["neither", "both"])
def test_a_try_names_one_thing(api, given):
    assert api("author").post("/target-tries", given).status_code == 422


def test_a_proposal_is_not_tried(api, project):
    make_target(project, accepted=False)
    assert api("runner").post("/target-tries", {"target": "local"}).status_code == 404

"""Grading over REST: without commands here, with commands on a worker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from runs import tasks
from runs.models import GradeRequest
from runs.tasks import tick
from runs.workers import jobs
from tests.greeting import EXISTS, SUCCEEDS, greeting
from tests.runs.jobs import do_job, job_of, lapse_jobs

pytestmark = pytest.mark.one_database

COMMAND = greeting(SUCCEEDS)
FILE = greeting(EXISTS)


class Worker:
    """Does what it is sent at once, in place of Celery."""

    def send_task(self, name: str, args: tuple[int, ...]) -> None:
        assert name == "runs.tasks.do_job"
        tasks.do_job(*args)


class Nobody:
    """Takes messages that no worker ever reads."""

    sent: list[tuple[Any, ...]] = []

    def send_task(self, name: str, args: tuple[Any, ...]) -> None:
        self.sent.append((name, *args))


worker = Worker()
nobody = Nobody()


@pytest.fixture
def with_worker(settings):
    settings.CELERY_APP = f"{__name__}.worker"


@pytest.fixture
def without_worker(settings):
    settings.CELERY_APP = f"{__name__}.nobody"
    nobody.sent.clear()


def given(text: str, content: str = "hello") -> dict[str, Any]:
    return {"suite": {"name": "greet.yaml", "text": text}, "evidence": {"files": {"out.txt": content}}}


def test_a_viewer_brings_no_patterns_of_their_own(api, without_worker):
    response = api("viewer").post("/grade", given(FILE))
    assert (response.status_code, response.json()["id"]) == (403, "api/forbidden")


def test_a_runner_runs_no_command(api, without_worker):
    response = api("runner").post("/grade", given(COMMAND))
    assert response.status_code == 200
    (gate,) = response.json()["gates"]
    assert (gate["passed"], gate["message"]) == (None, "Not run: needs a workspace on a worker.")
    assert nobody.sent == []


@pytest.mark.parametrize(("content", "outcome"), [("hello", "pass"), ("goodbye", "fail")])
def test_a_worker_runs_an_authors_commands(api, with_worker, content, outcome):
    response = api("author").post("/grade", given(COMMAND, content))
    assert (response.status_code, response.json()["outcome"]) == (200, outcome)


def test_no_worker_is_asked_where_no_command_is(api, without_worker):
    assert api("author").post("/grade", given(FILE)).json()["outcome"] == "pass"
    assert not GradeRequest.objects.exists()


def test_it_gives_an_address_when_it_takes_long(api, without_worker):
    author = api("author")
    response = author.post("/grade?wait=0", given(COMMAND))
    assert response.status_code == 202
    address = response.json()["url"].removeprefix("/api/v1")
    assert author.get(address).status_code == 202
    do_job(GradeRequest.objects.get(pk=response.json()["id"]))
    assert author.get(address).json()["outcome"] == "pass"


def test_a_request_is_carried_out_once(api, without_worker):
    api("author").post("/grade?wait=0", given(COMMAND))
    made = GradeRequest.objects.get()
    assert jobs.take(job_of(made).pk)
    assert not do_job(made)
    assert GradeRequest.objects.get().result is None


def test_a_request_whose_worker_was_lost_is_answered(api, without_worker):
    author = api("author")
    made = author.post("/grade?wait=0", given(COMMAND)).json()["id"]
    late = GradeRequest.objects.get(pk=made)
    assert jobs.take(job_of(late).pk)
    tick()
    assert author.get(f"/grade/{made}").status_code == 202
    lapse_jobs()
    tick()
    late.finish({"graded": {}})
    answer = author.get(f"/grade/{made}")
    assert (answer.status_code, answer.json()["id"]) == (422, "grade/lost")
    assert answer.json()["detail"] == "The worker that graded it was lost. Send it again."


def test_a_lost_message_is_sent_again(api, without_worker):
    made = api("author").post("/grade?wait=0", given(COMMAND)).json()["id"]
    nobody.sent.clear()
    tick()
    assert nobody.sent == [("runs.tasks.do_job", job_of(GradeRequest.objects.get(pk=made)).pk)]


def test_requests_are_gone_after_an_hour(api, without_worker):
    api("author").post("/grade?wait=0", given(COMMAND))
    GradeRequest.objects.update(created=timezone.now() - timedelta(hours=2))
    tick()
    assert not GradeRequest.objects.exists()


@pytest.mark.parametrize("role", ["runner", "author"])
def test_an_invalid_file_is_reported_to_every_role(api, with_worker, role):
    response = api(role).post("/grade", given(COMMAND.replace("command_succeeds", "command_succeed")))
    assert (response.status_code, response.json()["id"]) == (422, "files/refused")
    assert response.json()["problems"][0]["line"]


def test_files_that_no_workspace_can_hold_are_refused(api, with_worker):
    body = given(COMMAND)
    body["evidence"]["files"] = {"../out.txt": "hello"}
    response = api("author").post("/grade", body)
    assert (response.status_code, response.json()["id"]) == (422, "grade/setup")


def test_what_a_command_prints_is_kept_whatever_it_is(api, with_worker):
    text = COMMAND.replace("grep -q hello out.txt", r"""printf 'a\\000b'; exit 1""")
    response = api("author").post("/grade", given(text))
    assert response.status_code == 200
    assert "\x00" not in response.content.decode()

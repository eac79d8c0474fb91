"""A run is judged or graded again once for each way in which it was asked, however often somebody asks."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from runs.engine.stored_trials.reassessing import request_reassessment
from runs.errors import RequestError
from runs.models import Reassessment, Run
from tests.builders import make_target
from tests.runs import carried
from tests.runs.jobs import do_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run() -> Run:
    """Return a closed run that can be graded and judged again."""
    gates = [{"type": "file_exists", "path": "out.txt"}]
    return carried.one(carried.shell_project(), prompt="echo done > out.txt", criteria={"gates": gates}).run


def ask(run: Run, kind: str = "judge", judge_model: str = "") -> Reassessment:
    rubric = "guidance" if kind == "judge" else ""
    return request_reassessment(run, kind, by=None, wakes=False, rubric=rubric, judge_model=judge_model)


def test_a_second_request_is_refused_while_the_first_is_pending(run: Run) -> None:
    first = ask(run)
    with pytest.raises(
        RequestError, match=f"Run {run.pk} is already being judged again. Wait for the results."
    ):
        ask(run)
    make_target(run.project, "strict", provider="mock")
    ask(run, judge_model="strict")
    ask(run, "grade")
    with pytest.raises(RequestError, match="already being graded again"):
        ask(run, "grade")
    do_job(first)
    ask(run)


def test_a_request_that_no_worker_took_in_time_blocks_no_other(run: Run) -> None:
    ask(run)
    Reassessment.objects.update(created=timezone.now() - timedelta(hours=7))
    ask(run)


def test_two_people_who_ask_at_once_make_one_request(run: Run) -> None:
    together, refused = threading.Barrier(2), []

    def press() -> None:
        together.wait(10)
        try:
            ask(run)
        except RequestError as error:
            refused.append(str(error))
        finally:
            connections.close_all()

    people = [threading.Thread(target=press) for _ in range(2)]
    for each in people:
        each.start()
    for each in people:
        each.join()
    assert (Reassessment.objects.count(), len(refused)) == (1, 1)

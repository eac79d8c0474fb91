"""Whether a target can work, as a worker finds."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Job, Target, TargetCheck
from runs.targets.definitions import request_check, store_availability
from runs.targets.providers.base import Availability
from runs.targets.target_list import target_rows
from runs.workers import jobs
from tests.builders import make_project, make_target
from tests.runs.jobs import do_job, job_of, lapse_jobs

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_broker(settings):
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


def changed(definition: dict) -> Target:
    target = make_target(make_project())
    target.provider, target.definition = definition["provider"], {"name": "local", **definition}
    target.save()
    return target


def checked(target: Target) -> TargetCheck:
    check = request_check(target, by=None)
    do_job(check)
    check.refresh_from_db()
    return check


def test_a_target_that_can_work_is_available():
    check = checked(make_target(make_project()))
    assert (check.available, check.sentence) == (True, "")
    assert check.worker and check.at


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ({"provider": "replay", "path": "/nowhere/recorded.jsonl"}, "recorded.jsonl"),
        ({"provider": "mock", "env": {"A": "${{ NOT_SET_HERE }}"}}, "needs the variable NOT_SET_HERE"),
        ({"provider": "gone"}, "is no longer valid"),
    ],
    ids=["missing file", "missing variable", "unknown provider"],
)
def test_what_is_wrong_is_a_sentence(definition, message):
    check = checked(changed(definition))
    assert check.available is False
    assert message in check.sentence


def test_what_only_a_trial_can_show_is_not_checked():
    target = changed({"provider": "http", "url": "http://127.0.0.1:9/chat"})
    check = checked(target)
    assert (check.available, check.sentence) == (None, "The first trial calls the address.")
    (row,) = target_rows(Target.objects.filter(pk=target.pk), now=timezone.now())
    assert row.state == "not checked"


def test_only_the_first_worker_takes_a_question():
    check = request_check(make_target(make_project()), by=None)
    assert jobs.take_job(job_of(check).pk) is not None
    assert jobs.take_job(job_of(check).pk) is None


def test_a_second_question_waits_for_the_first():
    target = make_target(make_project())
    assert request_check(target, by=None) == request_check(target, by=None)


def test_asking_again_keeps_only_the_last_answer():
    target = make_target(make_project())
    for _ in range(3):
        checked(target)
    assert target.checks.count() == 2


def test_what_a_preparation_found_does_not_answer_somebody_who_waits():
    target = make_target(make_project())
    asked = request_check(target, by=None)
    store_availability(target, Availability(available=False, sentence="Start it."))
    assert list(target.checks.all()) == [asked]


def test_what_a_preparation_found_takes_the_place_of_the_last_answer():
    target = make_target(make_project())
    checked(target)
    store_availability(target, Availability(available=False, sentence="Start it.\0", version="2.0"))
    check = target.checks.get()
    assert (check.available, check.sentence, check.version) == (False, "Start it.\ufffd", "2.0")
    assert check.worker and check.at and not check.is_waiting(now=timezone.now())


def test_a_lost_message_is_sent_again_while_somebody_may_wait():
    checks = [request_check(make_target(make_project(name)), by=None) for name in ("one", "two", "three")]
    jobs.take_job(job_of(checks[1]).pk)
    Job.objects.filter(pk=job_of(checks[2]).pk).update(expires=timezone.now() - timedelta(seconds=1))
    assert list(jobs.due_jobs()) == [job_of(checks[0])]
    jobs.remove_expired()
    assert Job.objects.count() == 2


def test_a_check_whose_worker_was_lost_says_so():
    check = request_check(make_target(make_project()), by=None)
    job = jobs.take_job(job_of(check).pk)
    lapse_jobs()
    jobs.end_lost()
    check.refresh_from_db()
    assert (check.at is not None, check.available, check.worker) == (True, None, job.worker)
    assert check.sentence == "Its worker was lost. Check the target again."
    assert not Job.objects.exists()

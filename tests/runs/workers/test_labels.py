"""Labels: which worker may work for a target."""

from __future__ import annotations

import pytest

from runs.engine import lanes, run_here
from runs.errors import MissingLabels
from runs.models import Run, Target, Worker
from runs.targets.definitions import request_check
from runs.workers import claims, fair_share
from runs.workers.labels import describe_wait, queue_for, waiting_runs_by_labels
from runs.workers.worker_registry import store_heartbeat, workers_online
from tests.builders import make_project, make_target
from tests.runs.carrying import launch, running
from tests.runs.jobs import do_job

pytestmark = pytest.mark.django_db

NOBODY = "Waits for a worker with the labels gpu, macos. None is running."


@pytest.fixture
def labelled() -> Target:
    target = make_target(make_project())
    Target.objects.filter(pk=target.pk).update(labels=["gpu", "macos"])
    target.refresh_from_db()
    return target


def started(settings, *labels: str) -> Run:
    """Return a running run, seen by a worker with these labels from now on."""
    settings.WORKER_LABELS = ["gpu", "macos"]
    run = running(trials=3)
    settings.WORKER_LABELS = list(labels)
    return run


@pytest.mark.parametrize("own", [(), ("gpu",), ("linux", "macos")])
def test_without_all_labels_nothing_is_claimed(settings, labelled, own):
    run = started(settings, *own)
    assert fair_share.next_slot() is None
    assert claims.claim_trial(run.pk) is None
    Run.objects.filter(pk=run.pk).update(state="queued")
    assert claims.claim_run(run.pk) is None


def test_a_preparation_is_chosen_only_with_the_labels(settings, labelled):
    settings.WORKER_LABELS = ["gpu", "macos"]
    run = launch().runs.get()
    settings.WORKER_LABELS = ["gpu"]
    assert fair_share.next_preparation(run.pk) is None
    settings.WORKER_LABELS = ["gpu", "macos"]
    assert fair_share.next_preparation(run.pk) == run.pk


def test_with_all_labels_work_is_claimed(settings, labelled):
    run = started(settings, "macos", "linux", "gpu")
    slot = fair_share.next_slot()
    assert slot is not None
    assert slot.run_id == run.pk
    assert claims.claim_trial(run.pk) is not None
    Run.objects.filter(pk=run.pk).update(state="queued")
    assert claims.claim_run(run.pk) is not None


def test_a_labelled_worker_does_unlabelled_work(settings):
    settings.WORKER_LABELS = ["gpu"]
    run = running()
    assert fair_share.next_slot() is not None
    assert claims.claim_trial(run.pk) is not None


def test_a_target_that_gets_labels_stops_running_lanes(settings):
    run = running(trials=3)
    assert claims.claim_trial(run.pk) is not None
    Target.objects.filter(pk=run.target_id).update(labels=["gpu"])
    lanes.run_lane(run.pk)
    assert run.trial_set.filter(state="queued").count() == 5


def test_a_check_is_taken_only_with_the_labels(settings, labelled):
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    check = request_check(labelled, by=None)
    settings.WORKER_LABELS = ["gpu"]
    do_job(check)
    check.refresh_from_db()
    assert (check.worker, check.at) == ("", None)
    settings.WORKER_LABELS = ["gpu", "macos"]
    do_job(check)
    check.refresh_from_db()
    assert check.available


def test_a_run_in_this_process_needs_the_labels(settings, labelled):
    settings.WORKER_LABELS = ["gpu"]
    with pytest.raises(MissingLabels) as refused:
        launch()
    assert str(refused.value) == (
        "The target 'local' needs the labels gpu, macos, and this process lacks macos. Set "
        "EVALHUB_WORKER_LABELS=gpu,macos if this machine has what they stand for, or leave the run to a worker that "
        "has them."
    )
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_this_process_carries_what_its_labels_allow(settings, labelled):
    settings.WORKER_LABELS = ["gpu", "macos"]
    run = launch().runs.get()
    run_here.run_here(run.launch)
    run.refresh_from_db()
    assert (run.state, run.outcome) == ("finished", "pass")


def test_a_run_says_which_labels_it_waits_for(settings, labelled):
    run = started(settings)
    Worker.objects.create(name="other", labels=["gpu"])
    assert describe_wait(run) == NOBODY
    assert waiting_runs_by_labels() == [
        "1 run waits for a worker with the labels gpu, macos. None is running."
    ]
    Worker.objects.create(name="able", labels=["gpu", "linux", "macos"])
    assert describe_wait(run) == ""
    assert waiting_runs_by_labels() == []


def test_the_registry_has_the_labels_of_each_worker(settings):
    settings.WORKER_LABELS = ["macos", "gpu", "gpu"]
    store_heartbeat(4)
    assert Worker.objects.get().labels == ["gpu", "macos"]
    assert workers_online(["gpu"])[0] == 1
    assert workers_online(["linux"])[0] == 0


@pytest.mark.parametrize(
    ("labels", "online", "queue"),
    [
        (["gpu"], [["gpu"], []], "evalhub.label.gpu"),
        (["gpu"], [["macos"], []], ""),
        (["gpu", "macos"], [["gpu"], ["macos"]], ""),
        (["gpu", "macos"], [["gpu"], ["gpu", "macos"]], "evalhub.label.macos"),
        (["gpu", "macos"], [["macos"], ["gpu", "macos"]], "evalhub.label.gpu"),
    ],
)
def test_work_goes_to_the_queue_that_fewest_others_read(labels, online, queue):
    assert queue_for(labels, online) == queue

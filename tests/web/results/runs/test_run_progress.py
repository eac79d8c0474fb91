"""A run that goes on: its progress, and its cancelling."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Run, Target, Trial, Worker
from runs.results.progress import is_due, progress_key, progress_of
from tests.builders import make_project, make_run, make_trial
from tests.web.results.runs.pages import address, page
from tests.web.results.trials.pages import HOSTILE, SHOWN
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


@pytest.fixture
def running(version):
    run = make_run(version, state="running", started=timezone.now())
    make_trial(run, "create")
    make_trial(run, "export", outcome="", state="running", started=timezone.now())
    make_trial(run, "export", outcome="")
    return run


def test_a_running_run_asks_for_its_progress_every_two_seconds(signed_in, running):
    text = page(signed_in(), running)
    assert "1 of 3 trials finished" in text
    progress = text.region("Progress")
    assert progress["hx-get"].startswith(address(running, "progress/?seen="))
    assert progress["hx-trigger"] == "every 2s"
    assert "Cancel run" in text


def test_a_run_says_which_labels_no_worker_has(signed_in, running):
    Target.objects.filter(pk=running.target_id).update(labels=["gpu", "macos"])
    Worker.objects.create(name="other", labels=["gpu"])
    sentence = "Waits for a worker with the labels gpu, macos. None is running."
    assert sentence in page(signed_in(), running)
    Worker.objects.create(name="able", labels=["gpu", "macos"])
    text = page(signed_in(), running)
    assert sentence not in text
    assert "1 worker online" in text


def test_a_run_says_the_limit_of_its_project(signed_in, running):
    type(running.project).objects.update(most_trials=20)
    assert "queued: 1 at a time (20 in this project)" in page(signed_in(), running)


def test_progress_is_a_fragment(signed_in, running):
    response = signed_in().get(address(running, "progress/"), headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert response.content.decode().lstrip().startswith("<section")


def test_a_running_trial_shows_time_worker_and_last_command(signed_in, running):
    started = timezone.now() - timedelta(seconds=42)
    trial = running.trial_set.get(state="running")
    Trial.objects.filter(pk=trial.pk).update(
        started=started, worker="eval-1:7", activity="taskmgr list --all", calls_so_far=7
    )
    row = row_of(page(signed_in(), running))
    assert row.link("export, 1").address == f"/p/tools/trials/{trial.pk}/"
    assert row.cell("Worker").text == "eval-1:7"
    assert row.cell("Elapsed").text in ("42 s", "43 s", "44 s")
    assert [row.cell(each).text for each in ("Limit", "Commands", "Last command")] == [
        "5 min",
        "7",
        "taskmgr list --all",
    ]
    assert row.all(".caution") == []


def test_the_last_command_has_its_exit_code_and_may_be_hostile_or_long(signed_in, running):
    trial, client = Trial.objects.filter(state="running"), signed_in()
    for activity, code, shown in (
        ("taskmgr list", None, "taskmgr list"),
        ("taskmgr list", 0, "✓ succeeded taskmgr list"),
        ("taskmgr list", 2, "✕ failed taskmgr list exit 2"),
        ("x" * 200, None, "x" * 200),
        (HOSTILE, None, SHOWN),
    ):
        trial.update(activity=activity, activity_exit_code=code, worker=HOSTILE)
        text = page(client, running)
        assert row_of(text).cell("Last command").text == shown
    assert text.all("script") == []


def test_it_shows_the_agents_time_limit(signed_in, running):
    trial = running.trial_set.get(state="running")
    for of_scenario, of_run, of_target, limit in (
        (None, {}, {}, 300.0),
        (None, {"timeout_seconds": 60}, {}, 60.0),
        (20, {"timeout_seconds": 60}, {}, 20.0),
        (20, {}, {"timeoutSeconds": 10}, 10.0),
        (20, {}, {"timeout_seconds": 30}, 20.0),
        (20, {}, {"timeout_seconds": "${{ LIMIT }}"}, None),
        (20, {}, {"timeout_seconds": "soon"}, None),
        (20, {}, {"timeout_seconds": [1]}, None),
    ):
        trial.scenario_version.content["limits"] = {"timeout_seconds": of_scenario}
        trial.scenario_version.save()
        Run.objects.update(options=of_run)
        Target.objects.update(definition={"name": "agent", "provider": "mock", **of_target})
        (now,) = progress_of(Run.objects.get(pk=running.pk), limits=True).now
        assert now.limit == limit, (of_scenario, of_run, of_target)
    assert row_of(page(signed_in(), running)).cell("Limit").text == "–"


def test_a_trial_that_has_little_time_left_is_marked(signed_in, running):
    trial = Trial.objects.filter(state="running")
    trial.update(started=timezone.now() - timedelta(seconds=241))
    assert row_of(page(signed_in(), running)).cell("Elapsed").text.startswith("! 4 min")
    trial.update(started=timezone.now() - timedelta(seconds=230))
    assert "!" not in row_of(page(signed_in(), running)).cell("Elapsed")


def row_of(run):
    """Return the only running trial of a run's page."""
    (row,) = run.table("Running trials").rows
    return row


def test_what_is_not_known_of_a_running_trial_is_a_dash_and_no_worker_is_missed(signed_in, running):
    text = page(signed_in(), running)
    # Trials run in the process of a command.
    assert "1 queued" in text
    assert "No worker is running" not in text
    row = row_of(text)
    assert [row.cell(each).text for each in ("Worker", "Commands", "Last command")] == ["–", "–", "–"]


def test_running_trials_are_counted_and_the_oldest_listed(signed_in, version, django_assert_num_queries):
    run = make_run(version, state="running", started=timezone.now())
    for n in range(33):
        at = timezone.now() - timedelta(seconds=n)
        make_trial(run, "create", outcome="", state="running", started=at)
    make_trial(run, "export", outcome="")
    run = Run.objects.defer("options").get(pk=run.pk)
    with django_assert_num_queries(1):
        progress = progress_of(run)
    assert (progress.running, progress.waiting, progress.done, progress.unlisted) == (33, 1, 0, 13)
    assert [trial.index for trial in progress.now] == list(range(32, 12, -1))
    text = page(signed_in(), run)
    assert len(text.table("Running trials").rows) == 21
    assert "13 more running; the oldest are shown." in text
    assert "◌ 33 running" in text


def test_without_running_trials_there_is_no_table(signed_in, version):
    run = make_run(version, state="queued")
    make_trial(run, outcome="")
    text = page(signed_in(), run)
    assert "Running now" not in text
    assert "Waiting for a worker." in text


@pytest.mark.parametrize(
    ("workers", "sentence"),
    [
        (0, "2 queued: 3 at a time. No worker is running. Start one with make worker."),
        (1, "2 queued: 3 at a time, 1 worker online. The verdict follows the last trial."),
        (2, "2 queued: 3 at a time, 2 workers online. The verdict follows the last trial."),
    ],
)
def test_it_shows_queued_trials_and_workers(signed_in, version, workers, sentence):
    run = make_run(version, state="running", concurrency=3)
    for _ in range(2):
        make_trial(run, "create", outcome="")
    Worker.objects.create(name="lost:1", seen=timezone.now() - timedelta(minutes=2))
    for n in range(workers):
        Worker.objects.create(name=f"here:{n}")
    assert sentence in page(signed_in(), run)


def test_it_names_the_full_disk(signed_in, version):
    run = make_run(version, state="running")
    make_trial(run, "create", outcome="")
    Worker.objects.create(name="here:1", problem="Disk full at /data/work: 3 MB free. Free some space there.")
    assert "Disk full at /data/work: 3 MB free. Free some space there." in page(signed_in(), run)


def test_it_names_the_cap_of_the_target(signed_in, version):
    run = make_run(version, state="running", concurrency=1)
    make_trial(run, "create", outcome="")
    Target.objects.update(workers=2)
    assert "1 queued: 1 at a time (2 on this target)." in page(signed_in(), run)


def test_progress_stops_the_polling_at_the_end(signed_in, version):
    run = make_run(version)
    make_trial(run)
    response = signed_in().get(address(run, "progress/"), headers={"HX-Request": "true"})
    assert (response.status_code, response.headers["HX-Refresh"]) == (286, "true")
    assert "every 2s" not in parse(response)


def test_cancelling_stops_what_waits(signed_in, running):
    assert signed_in("runner").post(address(running, "cancel/")).url == address(running)
    running.refresh_from_db()
    assert running.cancel_requested
    assert list(Trial.objects.filter(run=running, state="queued")) == []


def test_cancelling_a_finished_run_is_refused(signed_in, version):
    run = make_run(version)
    client = signed_in()
    response = client.post(address(run, "cancel/"), follow=True)
    assert "has already finished." in parse(response)


def test_viewers_do_not_cancel(signed_in, running):
    assert signed_in("viewer").post(address(running, "cancel/")).status_code == 403


def test_cancelling_takes_a_post(signed_in, running):
    assert signed_in().get(address(running, "cancel/")).status_code == 405


def test_runs_of_another_project_cannot_be_cancelled(signed_in, running):
    other = signed_in(of=make_project("other"))
    assert other.post(f"/p/other/runs/{running.pk}/cancel/").status_code == 404


def test_errors_are_retried_from_the_page(signed_in, version):
    run = make_run(version)
    make_trial(run, "create")
    trial = make_trial(run, "export", outcome="error", error="No answer.", started=timezone.now())
    client = signed_in("runner")
    assert "Retry errors, 1 trial" in page(client, run)
    shown = parse(client.post(address(run, "retry/"), follow=True))
    assert "1 trial queued. Earlier attempts are kept." in shown
    run.refresh_from_db()
    assert (run.state, run.open, run.errors) == ("queued", 1, 0)
    attempt = parse(client.get(f"/p/{run.project.slug}/trials/{trial.pk}/")).region("Earlier attempts")
    assert "No answer." in attempt
    assert "is in progress." in parse(client.post(address(run, "retry/"), follow=True))


def test_viewers_see_no_retry(signed_in, version):
    run = make_run(version)
    make_trial(run, outcome="error")
    assert "Retry errors" not in page(signed_in("viewer"), run)


def test_a_cancelled_run_is_resumed_from_the_page(signed_in, running):
    client = signed_in("runner")
    Trial.objects.filter(run=running, state="running").update(state="finished", outcome="pass")
    Run.objects.filter(pk=running.pk).update(open=1, passed=2)
    client.post(address(running, "cancel/"))
    assert "Resume 1 cancelled trial" in page(client, running)
    client.post(address(running, "resume/"))
    running.refresh_from_db()
    assert (running.state, running.open, running.cancelled) == ("queued", 1, 0)


def test_polling_brings_counts_layers_and_dots_together(signed_in, running):
    client = signed_in()
    link = page(client, running).region("Progress")["hx-get"]
    headers = {"HX-Request": "true"}
    same = client.get(link, headers=headers)
    assert same.headers["HX-Reswap"] == "none"
    assert "trials finished" not in parse(same)
    make_trial(running, "create", outcome="fail")
    changed = client.get(link, headers=headers)
    assert "HX-Reswap" not in changed.headers
    shown = parse(changed)
    assert "2 of 4 trials finished" in shown
    assert changed.content.decode().count("2 of 4 trials finished") == 2
    assert "4 trials" in shown


def test_pages_of_large_runs_change_less_often(running):
    before = progress_key(running, progress_of(running))
    Run.objects.filter(pk=running.pk).update(trials=1000, passed=2)
    running.refresh_from_db()
    assert not is_due(running, progress_of(running), before)
    assert is_due(
        running, progress_of(running), f"{int(before.split('-')[0]) - 10}-{before.partition('-')[2]}"
    )
    assert is_due(running, progress_of(running), "nonsense")

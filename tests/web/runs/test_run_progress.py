"""A run that goes on: its progress, and its cancelling."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Run, Target, Trial, Worker
from runs.warehouse.progress import progress_of
from tests.builders import make_project, make_run, make_trial
from tests.web.runs.pages import address, page
from tests.web.trials.pages import HOSTILE, SHOWN


@pytest.fixture
def running(version):
    run = make_run(version, state="running", started=timezone.now())
    make_trial(run, "create")
    make_trial(run, "export", outcome="", state="running", started=timezone.now())
    make_trial(run, "export", outcome="")
    return run


def test_a_running_run_asks_for_its_progress_every_two_seconds(signed_in, running):
    text = page(signed_in(), running)
    assert "1 of 3 trials are done" in text
    assert f'hx-get="{address(running, "progress/")}" hx-trigger="every 2s"' in text
    assert "Cancel run" in text


def test_progress_is_a_fragment(signed_in, running):
    response = signed_in().get(address(running, "progress/"), headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert response.content.decode().lstrip().startswith("<section")


def test_it_says_what_runs_for_how_long_and_where_and_what_its_agent_did_last(signed_in, running):
    started = timezone.now() - timedelta(seconds=42)
    trial = running.trial_set.get(state="running")
    Trial.objects.filter(pk=trial.pk).update(
        started=started, worker="eval-1:7", doing="taskmgr list --all", calls_so_far=7
    )
    text = page(signed_in(), running)
    (row,) = re.findall(r'<tr><th scope="row" class="wrap"><a id="now-.*?</tr>', text)
    assert f'href="/p/tools/trials/{trial.pk}/">export, 1</a>' in row
    assert ">eval-1:7</td>" in row
    assert re.search(r"UTC\">4[23] s</time>", row)
    assert '<td class="num p2 muted">5 min</td><td class="num">7</td>' in row
    assert "<code>taskmgr list --all</code>" in row
    assert "caution" not in row


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        (None, "", ""),
        (0, '<span class="better">✓<span class="visually-hidden"> succeeded</span></span> ', ""),
        (2, '<span class="worse">✕<span class="visually-hidden"> failed</span></span> ', " exit 2"),
    ],
)
def test_it_says_what_the_last_command_came_to(signed_in, running, code, before, after):
    Trial.objects.filter(state="running").update(doing="taskmgr list", doing_exit=code)
    assert f'<td class="wrap">{before}<code>taskmgr list</code>{after}</td>' in page(signed_in(), running)


@pytest.mark.parametrize(
    ("of_scenario", "options", "of_target", "shown"),
    [
        (None, {}, {}, "5 min"),
        (None, {"timeout_seconds": 60}, {}, "60 s"),
        (20, {"timeout_seconds": 60}, {}, "20 s"),
        (20, {}, {"timeoutSeconds": 10}, "10 s"),
        (20, {}, {"timeout_seconds": 30}, "20 s"),
        (20, {}, {"timeout_seconds": "${{ LIMIT }}"}, "·"),
        (20, {}, {"timeout_seconds": "soon"}, "·"),
        (20, {}, {"timeout_seconds": [1]}, "·"),
    ],
)
def test_it_says_how_long_an_agent_may_take(signed_in, running, of_scenario, options, of_target, shown):
    trial = running.trial_set.get(state="running")
    trial.scenario_version.content["limits"] = {"timeout_seconds": of_scenario}
    trial.scenario_version.save()
    Run.objects.update(options=options)
    Target.objects.update(definition={"name": "agent", "provider": "mock", **of_target})
    assert f'<td class="num p2 muted">{shown}</td>' in row_of(page(signed_in(), running))


def test_a_trial_that_has_little_time_left_is_marked(signed_in, running):
    trial = Trial.objects.filter(state="running")
    trial.update(started=timezone.now() - timedelta(seconds=241))
    assert '<td class="num caution">! <time' in row_of(page(signed_in(), running))
    trial.update(started=timezone.now() - timedelta(seconds=230))
    assert "caution" not in row_of(page(signed_in(), running))


def row_of(text):
    (row,) = re.findall(r"<tr><th[^>]*><a id=\"now-.*?</tr>", text)
    return row


def test_what_is_not_known_of_a_running_trial_is_a_dot(signed_in, running):
    (row,) = re.findall(r"<tr><th[^>]*><a id=\"now-.*?</tr>", page(signed_in(), running))
    assert '<td class="wrap"><span class="muted">·</span></td>' in row
    assert '<td class="p2 wrap muted">·</td>' in row
    assert '<td class="num">·</td>' in row


def test_what_an_agent_did_last_may_be_hostile(signed_in, running):
    running.trial_set.filter(state="running").update(doing=HOSTILE, worker=HOSTILE)
    text = page(signed_in(), running)
    assert f"<code>{SHOWN}</code>" in text
    assert "<script>alert" not in text


def test_what_an_agent_did_last_may_be_long_and_is_shown_whole(signed_in, running):
    running.trial_set.filter(state="running").update(doing="x" * 200)
    assert f"<code>{'x' * 200}</code>" in page(signed_in(), running)


def test_all_running_trials_are_counted_and_those_that_began_first_are_listed(
    signed_in, version, django_assert_num_queries
):
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
    assert text.count('<a id="now-') == 20
    assert "13 more are running; these began first." in text
    assert "◌ 33 running" in text


def test_without_running_trials_there_is_no_table(signed_in, version):
    run = make_run(version, state="queued")
    make_trial(run, outcome="")
    text = page(signed_in(), run)
    assert "Running now" not in text
    assert "Waiting for a worker." in text


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        (0, "2 trials wait: at most 3 run at once. No worker was heard of in the last minute"),
        (1, "2 trials wait: at most 3 run at once; 1 worker is here. There"),
        (2, "2 trials wait: at most 3 run at once; 2 workers are here. There"),
    ],
)
def test_it_says_what_waits_and_how_many_workers_there_are(signed_in, version, workers, said):
    run = make_run(version, state="running", concurrency=3)
    for _ in range(2):
        make_trial(run, "create", outcome="")
    Worker.objects.create(name="lost:1", seen=timezone.now() - timedelta(minutes=2))
    for n in range(workers):
        Worker.objects.create(name=f"here:{n}")
    assert said in page(signed_in(), run)


def test_it_says_which_disk_is_full(signed_in, version):
    run = make_run(version, state="running")
    make_trial(run, "create", outcome="")
    Worker.objects.create(name="here:1", problem="Disk full at /data/work: 3 MB free. Free some space there.")
    assert "Disk full at /data/work: 3 MB free. Free some space there." in page(signed_in(), run)


def test_it_names_the_cap_of_the_target(signed_in, version):
    run = make_run(version, state="running", concurrency=1)
    make_trial(run, "create", outcome="")
    Target.objects.update(workers=2)
    said = "1 trial waits: at most 1 runs at once, and 2 of all runs on this target"
    assert said in page(signed_in(), run)


def test_no_worker_is_missed_where_trials_run_without_one(signed_in, running):
    # They run in the process of a command.
    text = page(signed_in(), running)
    assert "1 trial waits" in text
    assert "No worker was heard of" not in text


def test_progress_stops_the_polling_at_the_end(signed_in, version):
    run = make_run(version)
    make_trial(run)
    response = signed_in().get(address(run, "progress/"), headers={"HX-Request": "true"})
    assert (response.status_code, response.headers["HX-Refresh"]) == (286, "true")
    assert "every 2s" not in response.content.decode()


def test_cancelling_stops_what_waits(signed_in, running):
    assert signed_in("runner").post(address(running, "cancel/")).url == address(running)
    running.refresh_from_db()
    assert running.cancel_requested
    assert list(Trial.objects.filter(run=running, state="queued")) == []


def test_cancelling_what_is_over_says_so(signed_in, version):
    run = make_run(version)
    client = signed_in()
    response = client.post(address(run, "cancel/"), follow=True)
    assert "is over, so there is nothing to cancel." in response.content.decode()


def test_viewers_do_not_cancel(signed_in, running):
    assert signed_in("viewer").post(address(running, "cancel/")).status_code == 403


def test_cancelling_takes_a_post(signed_in, running):
    assert signed_in().get(address(running, "cancel/")).status_code == 405


def test_nobody_cancels_runs_of_another_project(signed_in, running):
    other = signed_in(of=make_project("other"))
    assert other.post(f"/p/other/runs/{running.pk}/cancel/").status_code == 404

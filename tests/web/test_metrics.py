"""`/metrics`: what it says, and to whom."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from runs.engine.retrying import RetryKind, retry_trials
from runs.models import Alert, Run, Target, Worker
from tests.builders import make_project, make_run, make_suite, make_trial

pytestmark = pytest.mark.django_db


def text(client, **headers) -> str:
    response = client.get("/metrics", **headers)
    assert response.status_code == 200
    return response.content.decode()


def test_it_counts_what_there_is(client):
    version = make_suite(make_project())
    run = make_run(version, cost_usd=1.5)
    for outcome in ("pass", "pass", "fail", "error"):
        make_trial(run, outcome=outcome)
    waiting = make_run(version, state="queued")
    make_trial(waiting, outcome="")
    Worker.objects.create(name="w1", lanes=3)
    Alert.objects.create(project=run.project, run=run)
    lines = text(client).splitlines()
    for line in (
        'evalhub_trials_total{outcome="passed"} 2',
        'evalhub_trials_total{outcome="errors"} 1',
        "evalhub_trials_queued 1",
        'evalhub_runs_open{state="queued"} 1',
        "evalhub_runs_closed_total 1",
        "evalhub_cost_usd_total 1.5",
        "evalhub_workers 1",
        "evalhub_lanes 3",
        "evalhub_alerts_untriaged 1",
    ):
        assert line in lines, line


def test_an_empty_evalhub_has_every_metric(client):
    assert 'evalhub_trials_total{outcome="passed"} 0' in text(client)


def test_it_counts_workers_and_queued_trials_of_each_label(client):
    run = make_run(make_suite(make_project()), state="running")
    Target.objects.filter(pk=run.target_id).update(labels=["gpu", "macos"])
    make_trial(run, outcome="")
    Worker.objects.create(name="w1", labels=["gpu", "linux"])
    lines = text(client).splitlines()
    for label, workers, queued in (("gpu", 1, 1), ("linux", 1, 0), ("macos", 0, 1)):
        assert f'evalhub_label_workers{{label="{label}"}} {workers}' in lines
        assert f'evalhub_label_trials_queued{{label="{label}"}} {queued}' in lines


def value_of(client, sample: str) -> float:
    (value,) = (line.split()[-1] for line in text(client).splitlines() if line.startswith(f"{sample} "))
    return float(value)


def test_counters_grow_when_errors_are_retried(client):
    errors, closed = 'evalhub_trials_total{outcome="errors"}', "evalhub_runs_closed_total"
    run = make_run(make_suite(make_project()), cost_usd=0.75)
    for _ in range(2):
        make_trial(run, outcome="error")
    assert (value_of(client, errors), value_of(client, closed)) == (2, 1)
    assert retry_trials(run, RetryKind.RETRY, by=None) == 2
    assert (value_of(client, errors), value_of(client, closed)) == (2, 1)
    Run.objects.filter(pk=run.pk).update(errors=1, passed=1, cost_usd=0.5, state="finished")
    assert (value_of(client, errors), value_of(client, closed)) == (3, 2)
    assert value_of(client, "evalhub_cost_usd_total") == 0.75
    Run.objects.filter(pk=run.pk).update(cost_usd=0.6)
    assert value_of(client, "evalhub_cost_usd_total") == 0.85


def test_large_numbers_have_all_of_their_digits(client):
    run = make_run(make_suite(make_project()), cost_usd=1234567.25)
    Run.objects.filter(pk=run.pk).update(passed=12_345_678)
    lines = text(client).splitlines()
    assert 'evalhub_trials_total{outcome="passed"} 12345678' in lines
    assert "evalhub_cost_usd_total 1234567.25" in lines
    assert not any("e+" in line for line in lines)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="There is no promtool here.")
def test_prometheus_has_nothing_to_say_of_them(client):
    make_trial(make_run(make_suite(make_project())), outcome="pass")
    Worker.objects.create(name="w1", labels=["gpu"], free_bytes=5)
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text(client), text=True, capture_output=True
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_it_names_no_project(client):
    make_run(make_suite(make_project("secret-plans"), name="Secret suite"))
    assert "ecret" not in text(client)


@pytest.mark.parametrize(
    "meta",
    [
        {"REMOTE_ADDR": "203.0.113.9"},
        {"REMOTE_ADDR": ""},
        {"HTTP_X_FORWARDED_FOR": "203.0.113.9"},
        {"HTTP_X_FORWARDED_PROTO": "https"},
        {"HTTP_FORWARDED": "for=203.0.113.9"},
    ],
    ids=str,
)
def test_strangers_get_nothing(client, meta):
    response = client.get("/metrics", **meta)
    assert response.status_code == 403
    assert b"evalhub_trials" not in response.content


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("Bearer the-token", 200),
        ("Bearer another", 403),
        ("Basic the-token", 403),
        ("Bearer é", 403),
        ("", 403),
    ],
)
def test_a_token_takes_the_place_of_the_address(client, settings, given, status):
    settings.METRICS_TOKEN = "the-token"
    meta = {"HTTP_AUTHORIZATION": given} if given else {}
    assert client.get("/metrics", **meta).status_code == status
    assert client.get("/metrics", REMOTE_ADDR="203.0.113.9", **meta).status_code == status


def test_it_makes_as_many_queries_for_many_runs_as_for_none(client, django_assert_max_num_queries):
    version = make_suite(make_project())
    for _ in range(3):
        make_run(version)
    text(client)
    with django_assert_max_num_queries(8):
        text(client)

"""Messages over real HTTP: signed, sent once, retried while the receiver is away, never to private addresses."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from runs.alerts.notifications import delivery
from runs.alerts.notifications.channels import send_again, send_test
from runs.db.transactions import database_now
from runs.models import Alert, Channel, CommandRecord, Delivery, Job, Notification, Run
from runs.tasks import tick
from runs.workers import jobs
from runs.workers.job_runner import run_job
from tests.builders import make_project
from tests.runs.alerts.notifications.channels import (
    SECRET,
    make_due,
    only_delivery,
    regressed,
    slack,
    webhook,
)
from tests.runs.jobs import deliver_due, lapse_jobs
from tests.runs.servers import Reply, Request, serving

DOCS = Path(__file__).parents[4] / "docs/notifications.md"
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _no_broker(settings: Any) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


def documented_verify() -> Callable[[str, dict[str, str], bytes], None]:
    """Return the function of the documentation."""
    (code,) = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    found: Callable[[str, dict[str, str], bytes], None] = names["verify"]
    return found


@pytest.mark.django_db
def test_a_regression_arrives_with_its_verdict(project: Any, settings: Any) -> None:
    settings.PUBLIC_URL = "https://evals.example.org"
    with serving(Reply({"ok": True})) as server:
        webhook(project, f"{server.url}/hook")
        run = regressed(project)
        assert deliver_due() == 1
    (request,) = server.requests
    body = request.json
    assert (request.method, request.path) == ("POST", "/hook")
    assert body["type"] == "regression"
    data = body["data"]
    assert data["url"] == f"https://evals.example.org/p/tools/runs/{run.pk}/"
    assert (data["project"], data["run"], data["suite"], data["target"]) == (
        "tools",
        run.pk,
        "basics",
        "local",
    )
    assert (data["suspected"], data["title"]) == (
        True,
        f"Suspected regression: Basics on local, run {run.pk}",
    )
    assert "Pass rate −100 points" in data["text"]
    assert "10 of 10 comparable scenarios worse" in data["text"]
    assert data["measures"][0]["effect"] == -1.0
    row = only_delivery()
    assert (row.state, row.attempts, row.status, row.response) == ("sent", 1, 200, '{"ok": true}')


@pytest.mark.django_db
def test_a_regression_says_tool_command_and_scenarios_first(project: Any) -> None:
    with serving(Reply({"ok": True})) as server:
        webhook(project, f"{server.url}/hook")
        run = regressed(project)
        Run.objects.filter(pk=run.pk).update(tool_version="todo 1.3")
        Run.objects.filter(pk=run.baseline_id).update(tool_version="todo 1.2")
        for trial in run.trial_set.all():
            CommandRecord.objects.create(trial=trial, n=0, line="todo add", subcommand="add", failed=True)
        deliver_due()
    text = server.requests[0].json["data"]["text"]
    scenarios = "scenarios task-00, task-01, task-02, task-03, task-04 and 5 more"
    assert text.splitlines()[0] == f"todo 1.3 (before: todo 1.2); add failed in 30 calls; {scenarios}."
    assert re.search(r"\bp [<=≈0]", text) is None


@pytest.mark.django_db
def test_the_documented_code_verifies_the_signature(project: Any) -> None:
    with serving(Reply()) as server:
        send_test(webhook(project, server.url), by=None)
        deliver_due()
    (request,) = server.requests
    verify = documented_verify()
    verify(SECRET, request.headers, request.body)
    assert request.headers["webhook-id"] == only_delivery().uid
    with pytest.raises(ValueError, match="not signed"):
        verify(SECRET, request.headers, request.body + b" ")
    stale = {**request.headers, "webhook-timestamp": str(int(request.headers["webhook-timestamp"]) - 301)}
    with pytest.raises(ValueError, match="too old"):
        verify(SECRET, stale, request.body)
    newer = {**request.headers, "webhook-timestamp": str(int(request.headers["webhook-timestamp"]) + 1)}
    with pytest.raises(ValueError, match="not signed"):
        verify(SECRET, newer, request.body)


@pytest.mark.django_db
def test_slack_gets_its_own_format_and_escaped_text(project: Any) -> None:
    project.name = "<!channel> & co"
    project.save()
    with serving(Reply(pieces=(b"ok",))) as server:
        slack(project, f"{server.url}/services/T0/B0/token")
        run = regressed(project)
        deliver_due()
    body = server.requests[0].json
    assert body["text"] == f"Suspected regression: Basics on local, run {run.pk}"
    assert f"runs/{run.pk}/|Open in evalhub>" in body["blocks"][1]["text"]["text"]
    assert "<!channel>" not in json.dumps(body)
    assert "&lt;!channel&gt; &amp; co" in json.dumps(body)
    assert "webhook-signature" not in server.requests[0].headers


@pytest.mark.django_db
def test_a_receiver_that_is_away_for_an_hour_gets_it_once(project: Any) -> None:
    replies = [Reply({"error": "down"}, 500)] * 7 + [Reply({"ok": True})]
    waits = []
    with serving(lambda _: replies.pop(0)) as server:
        webhook(project, server.url)
        regressed(project)
        for _ in range(7):
            before = timezone.now()
            assert deliver_due() == 1
            row = only_delivery()
            assert (row.state, row.status) == ("queued", 500)
            waits.append(round((row.next_attempt - before).total_seconds() / 60))
            assert deliver_due() == 0, "it is not due yet"
            make_due()
        assert deliver_due() == 1
        assert deliver_due() == 0
    assert waits == [1, 2, 4, 8, 16, 32, 60]
    assert sum(waits) > 60
    row = only_delivery()
    assert (row.state, row.attempts, row.status) == ("sent", 8, 200)
    assert len({each.headers["webhook-id"] for each in server.requests}) == 1
    assert len({each.body for each in server.requests}) == 1
    verify = documented_verify()
    for each in server.requests:
        verify(SECRET, each.headers, each.body)


@pytest.mark.django_db
def test_retries_end_after_a_day_and_can_be_started_again(project: Any) -> None:
    with serving(Reply({"error": "down"}, 503)) as server:
        webhook(project, server.url)
        regressed(project)
        deliver_due()
        for hours, state in ((23, "queued"), (24, "failed")):
            Delivery.objects.update(first_attempt=timezone.now() - hours * HOUR)
            make_due()
            deliver_due()
            assert only_delivery().state == state
        make_due()
        assert deliver_due() == 0
    assert (only_delivery().status, only_delivery().response) == (503, '{"error": "down"}')
    assert send_again(only_delivery(), by=None)
    assert not send_again(only_delivery(), by=None)
    with serving(Reply()) as server:
        Channel.objects.update(address=server.url)
        deliver_due()
    assert only_delivery().state == "sent"


@pytest.mark.django_db
def test_nobody_who_listens_is_retried(project: Any) -> None:
    with serving(Reply()) as server:
        pass
    webhook(project, server.url)
    regressed(project)
    deliver_due()
    row = only_delivery()
    assert (row.state, row.status) == ("queued", None)
    assert row.response.startswith("Not reachable: ")


@pytest.mark.django_db
def test_a_redirect_to_a_private_address_is_not_followed(project: Any) -> None:
    with serving(Reply()) as inside, serving(Reply(status=302, headers={"Location": inside.url})) as server:
        webhook(project, server.url)
        regressed(project)
        deliver_due()
    row = only_delivery()
    assert (row.state, row.status) == ("queued", 302)
    assert row.response == (
        "It redirects to 127.0.0.1; redirects aren't followed. Enter the address that it leads to."
    )
    assert inside.requests == []


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"])
def test_a_private_address_is_refused_at_once(project: Any, settings: Any, host: str) -> None:
    settings.EMBEDDED = False
    with serving(Reply()) as server:
        webhook(project, f"http://{host}:{server.port}/")
        regressed(project)
        deliver_due()
    row = only_delivery()
    assert row.state == "failed"
    assert "is not public, and it is not allowed here." in row.response
    assert server.requests == []


@pytest.mark.django_db
def test_metadata_addresses_are_refused_even_if_allowed(project: Any, settings: Any) -> None:
    settings.HTTP_ALLOW = ["169.254.169.254", "0.0.0.0/0"]
    webhook(project, "http://169.254.169.254/latest/meta-data/")
    regressed(project)
    deliver_due()
    assert "is an address that is never called" in only_delivery().response


@pytest.mark.django_db
def test_answers_are_stored_short_and_without_secrets(project: Any) -> None:
    path = "/hook/secret-token-of-the-path?key=abcdefgh"

    def echo(request: Request) -> Reply:
        text = f"\0 bad {request.path} {SECRET} {'x' * 5000}"
        return Reply(status=400, pieces=(text.encode(),))

    with serving(echo) as server:
        webhook(project, f"{server.url}{path}")
        regressed(project)
        deliver_due()
    response = only_delivery().response
    assert response.startswith("� bad … … xxx")
    assert len(response) <= 1000
    assert "token" not in response
    assert SECRET not in response


@pytest.mark.django_db
def test_no_address_is_logged(project: Any, caplog: pytest.LogCaptureFixture) -> None:
    import logging.config

    from django.conf import settings

    with serving(Reply(status=500)) as server, caplog.at_level("DEBUG"):
        logging.getLogger("httpx").setLevel(settings.LOGGING["loggers"]["httpx"]["level"])
        webhook(project, f"{server.url}/secret-token-of-the-path")
        regressed(project)
        deliver_due()
    assert only_delivery().status == 500
    assert "secret-token" not in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.django_db
def test_a_regression_that_is_taken_back_is_not_sent(project: Any) -> None:
    with serving(Reply()) as server:
        webhook(project, server.url)
        regressed(project)
        Alert.objects.all().delete()
        deliver_due()
    assert server.requests == []
    row = only_delivery()
    assert (row.state, row.response) == ("skipped", "The regression was taken back before this was sent.")


@pytest.mark.django_db
def test_a_channels_messages_wait_behind_one_that_fails(project: Any) -> None:
    replies = [Reply(status=500), Reply(), Reply()]
    with serving(lambda _: replies.pop(0)) as server:
        channel = webhook(project, server.url)
        first, second = send_test(channel, by=None), send_test(channel, by=None)
        assert deliver_due() == 1
        make_due()
        assert deliver_due() == 2
    assert [each.headers["webhook-id"] for each in server.requests] == [first.uid, first.uid, second.uid]


@pytest.mark.django_db
def test_a_worker_that_ends_before_sending_loses_nothing(project: Any) -> None:
    with serving(Reply()) as server:
        send_test(webhook(project, server.url), by=None)
        assert jobs.take_job(Job.objects.get().pk)
        assert deliver_due() == 0, "another worker has the job"
        lapse_jobs()
        jobs.end_lost()
        assert deliver_due() == 1
    assert only_delivery().state == "sent"


@pytest.mark.django_db
def test_a_worker_that_ends_after_sending_sends_no_second(project: Any) -> None:
    with serving(Reply()) as server:
        send_test(webhook(project, server.url), by=None)
        assert jobs.take_job(Job.objects.get().pk)
        Delivery.objects.update(state="sending", attempts=1)
        lapse_jobs()
        jobs.end_lost()
        assert deliver_due() == 0
    row = only_delivery()
    assert row.state == "failed"
    assert row.response.startswith("The worker ended while it sent this, so it may have arrived.")
    assert server.requests == []


@pytest.mark.django_db
def test_a_lost_claim_sends_nothing(project: Any) -> None:
    with serving(Reply()) as server:
        send_test(webhook(project, server.url), by=None)
        lost = jobs.take_job(Job.objects.get().pk)
        lapse_jobs()
        jobs.end_lost()
        assert deliver_due() == 1
        with pytest.raises(jobs.JobLost):
            delivery.deliver_channel(lost)
    assert len(server.requests) == 1


@pytest.mark.django_db(transaction=True)
def test_two_deliverers_at_once_send_once(settings: Any) -> None:
    barrier = threading.Barrier(2)

    def work(job_id: int) -> None:
        try:
            barrier.wait(10)
            run_job(job_id, delivery.deliver_channel)
        finally:
            connections.close_all()

    with serving(Reply(delay=0.05)) as server:
        channel = webhook(make_project(), server.url)
        sent = [send_test(channel, by=None).uid for _ in range(8)]
        threads = [threading.Thread(target=work, args=(Job.objects.get().pk,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(each.headers["webhook-id"] for each in server.requests) == sorted(sent)
    assert set(Delivery.objects.values_list("state", "attempts")) == {("sent", 1)}


@pytest.mark.django_db
def test_the_tick_asks_a_worker_for_each_due_channel(project: Any, settings: Any) -> None:
    settings.CELERY_APP = f"{__name__}.HEARING"
    HEARING.heard.clear()
    send_test(webhook(project, "https://a.example.org"), by=None)
    later = webhook(project, "https://b.example.org", name="later")
    send_test(later, by=None)
    Job.objects.filter(subject=later.pk).update(due=database_now() + 3600)
    HEARING.heard.clear()
    tick()
    job = Job.objects.get(kind="channel", subject=Channel.objects.get(name="hook").pk)
    assert HEARING.heard == [("runs.tasks.do_job", (job.pk,))]


class _Hearing:
    """Stands for the Celery application, and remembers what was sent."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, tuple[int, ...]]] = []

    def send_task(self, name: str, args: tuple[int, ...] = (), **_: Any) -> None:
        self.heard.append((name, tuple(args)))


HEARING = _Hearing()


@pytest.mark.django_db
def test_the_log_keeps_ninety_days(project: Any) -> None:
    with serving(Reply()) as server:
        channel = webhook(project, server.url)
        send_test(channel, by=None)
        deliver_due()
    send_test(channel, by=None)
    Notification.objects.update(at=timezone.now() - timedelta(days=91))
    send_test(channel, by=None)
    delivery.remove_old(now=timezone.now())
    assert [row.state for row in Delivery.objects.all()] == ["queued", "queued"]

"""Lanes over whole launches: turns, preparation, and what is heard while an agent works."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, connections, transaction

from runs import lanes, launching, preparation, recording
from runs.models import Run, Target, Trial
from runs.queue import heartbeat as heartbeat_module
from runs.queue.heartbeat import Heartbeat
from runs.queue.worker_name import worker_name
from scenarios.formats.parsed import FixtureFile
from scenarios.models import Rubric
from scenarios.storing import keep_fixture
from tests.builders import make_guidance, make_project, make_suite, make_target
from tests.runs.carrying import NO_GATES, claimed, launch, running, shell_target, suite_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_runs_of_a_launch_take_turns():
    project = make_project()
    version = make_suite(project, **NO_GATES)
    guidance = [make_guidance(version.suite, name) for name in ("a", "b")]
    started = launch(version, guidance=guidance, trials=3)
    Run.objects.filter(launch=started).update(state="running")
    first = started.runs.order_by("pk").first()
    lanes.work(first.pk)
    order = list(Trial.objects.filter(run__launch=started).order_by("started").values_list("run", flat=True))
    assert len(order) == 12
    assert all(order[n] != order[n + 1] for n in range(11)), order


def test_a_lane_whose_time_is_over_says_that_work_is_left():
    run = running(trials=5)
    assert lanes.work(run.pk, until=time.monotonic())
    assert run.trial_set.filter(state="finished").count() == 1
    assert not lanes.work(run.pk)
    run.refresh_from_db()
    assert run.state == "finished"


def test_a_launch_is_carried_to_its_end_in_this_process():
    started = launch(trials=10, concurrency=4)
    launching.carry_here(started)
    run = started.runs.get()
    assert (run.state, run.outcome, run.passed) == ("finished", "pass", 20)
    assert run.fingerprint["target"] == "local"
    assert run.started <= run.finished


def test_the_fingerprint_names_fixtures_and_rubrics_beside_their_hashes():
    project = make_project()
    edits = {"fixture": "shop", **NO_GATES}
    version = suite_of(project, a=edits, b=edits, c={"fixture": "garden", **NO_GATES}, d=edits)
    fixtures = [keep_fixture(project, (FixtureFile("a.txt", name),)) for name in (b"shop", b"garden")]
    rubric = Rubric.objects.create(project=project, sha256="c" * 64, name="capture", content={})
    stored = {each.scenario.key: each for each in version.scenario_versions.all()}
    for key, fixture in (("a", fixtures[0]), ("b", fixtures[0]), ("c", fixtures[1]), ("d", None)):
        stored[key].fixture, stored[key].rubric = fixture, rubric if key == "a" else None
        stored[key].save()
    started = launch(version)
    launching.carry_here(started)
    told = started.runs.get().fingerprint
    assert told["names"] == {"fixture": "garden, shop", "rubric": "capture"}
    assert told["rubric"] == rubric.sha256
    plain = launch(make_suite(project, **NO_GATES))
    launching.carry_here(plain)
    assert plain.runs.get().fingerprint["names"] == {}


def test_a_target_that_cannot_work_spends_no_trial():
    project = make_project()
    shell_target(project, healthcheck={"type": "command", "command_template": "echo asleep; exit 1"})
    run = launch(suite_of(project, a={"prompt": "true"}), targets=["shell"]).runs.get()
    assert not preparation.prepare_run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.outcome, run.cancelled, run.open) == ("finished", "error", 1, 0)
    assert "asleep" in run.error
    assert not Trial.objects.filter(starts__gt=0).exists()
    check = run.target.checks.get()
    assert (check.available, "asleep" in check.sentence) == (False, True)


def test_a_target_that_a_run_was_prepared_for_is_known_to_be_ready():
    project = make_project()
    shell_target(project)
    version = suite_of(project, a={"prompt": "true"})
    for _ in range(2):
        run = launch(version, targets=["shell"]).runs.get()
        assert preparation.prepare_run(run.pk)
    check = run.target.checks.get()
    assert check.available and check.worker and check.at >= run.created


def test_a_tool_that_does_not_answer_spends_no_trial():
    project = make_project()
    tool = {"binary": "nope", "health_check": "no-such-tool --version"}
    version = suite_of(project, a={"prompt": "true", "criteria": {"tool": tool}})
    shell_target(project)
    run = launch(version, targets=["shell"]).runs.get()
    assert not preparation.prepare_run(run.pk)
    run.refresh_from_db()
    assert "no-such-tool --version' ended with exit code 127" in run.error
    assert run.error.endswith("mend the command in the scenario's target section.")


def test_the_version_of_the_tool_is_its_version_commands_first_line():
    project = make_project()
    tool = {"binary": "t", "health_check": "echo healthy", "version_command": "printf '7.1\\nmore'"}
    shell_target(project)
    run = launch(
        suite_of(project, a={"prompt": "true", "criteria": {"tool": tool}}), targets=["shell"]
    ).runs.get()
    assert preparation.prepare_run(run.pk)
    run.refresh_from_db()
    assert (run.tool_version, run.fingerprint["tool_version"]) == ("7.1", "7.1")


def test_a_version_command_that_fails_is_a_warning():
    project = make_project()
    tool = {"binary": "t", "health_check": "printf 'ready\\000'", "version_command": "exit 3"}
    shell_target(project)
    run = launch(
        suite_of(project, a={"prompt": "true", "criteria": {"tool": tool}}), targets=["shell"]
    ).runs.get()
    assert preparation.prepare_run(run.pk)
    run.refresh_from_db()
    assert run.tool_version == "ready\ufffd"
    assert "'exit 3' ended with exit code 3" in run.warnings[0]


def test_a_preparation_that_breaks_ends_the_run_with_the_reason():
    run = launch().runs.get()
    Run.objects.filter(pk=run.pk).update(options={"trials": "no number"})
    assert not preparation.prepare_run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.outcome, run.cancelled) == ("finished", "error", 2)
    assert "in evalhub itself" in run.error


def test_cancelling_ends_a_running_agent_within_seconds():
    project = make_project()
    shell_target(project)
    run = launch(suite_of(project, a={"prompt": "sleep 60"}), targets=["shell"]).runs.get()

    def carry() -> None:
        try:
            launching.carry_here(run.launch)
        finally:
            connections.close_all()

    carrier = threading.Thread(target=carry)
    carrier.start()
    try:
        while not Trial.objects.filter(run=run, state="running").exists():
            time.sleep(0.05)
        began = time.monotonic()
        recording.cancel_run(run.pk)
    finally:
        carrier.join(20)
    assert time.monotonic() - began < 5
    run.refresh_from_db()
    assert (run.state, run.cancelled, run.open) == ("cancelled", 1, 0)
    assert run.trial_set.get().state == "cancelled"


def test_the_heartbeat_hears_that_a_claim_is_somebody_elses(settings):
    settings.LEASE_SECONDS = 1
    run = running()
    claim = claimed(run)
    beat = Heartbeat()
    with beat.holding(claim.token, "trial"):
        Trial.objects.filter(pk=claim.trial_id).update(token="another")
        end = time.monotonic() + 5
        while not beat.stopped(claim.token) and time.monotonic() < end:
            time.sleep(0.05)
        assert beat.stopped(claim.token)
    assert not beat.stopped(claim.token)


def test_the_heartbeat_keeps_a_claim_beyond_its_lease(settings):
    settings.LEASE_SECONDS = 1
    run = running()
    claim = claimed(run)
    beat = Heartbeat()
    with beat.holding(claim.token, "trial"):
        time.sleep(2.2)
        from runs.queue.claims import expired_trials

        assert not expired_trials().exists()
        assert not beat.stopped(claim.token)


TOLD_CALLS = """
echo '{"type":"tool_call","name":"bash","command":"taskmgr list --all"}' >> "$EVENTS"
echo '{"type":"tool_result","output":"none"}' >> "$EVENTS"
sleep 60
"""


def test_a_running_trial_says_what_its_agent_did_last_and_who_carries_it():
    project = make_project()
    shell_target(project)
    run = running(suite_of(project, works={"prompt": TOLD_CALLS}), targets=["shell"])
    with carrying(run):
        until(lambda: Trial.objects.filter(run=run).exclude(doing="").exists())
        assert run.trial_set.values_list("doing", "worker").get() == ("taskmgr list --all", worker_name())
        recording.cancel_run(run.pk)
    assert run.trial_set.values_list("state", "doing", "worker").get() == ("cancelled", "", worker_name())


def test_what_an_agent_did_last_is_stored_without_secrets(monkeypatch):
    secret = "hunter2-and-more"
    monkeypatch.setenv("TOOL_KEY", secret)
    script = """printf '{"type":"tool_call","command":"git push %s"}\\n' "$TOOL_KEY" > "$EVENTS"; sleep 60"""
    criteria = {"tool": {"binary": "git", "env": {"TOOL_KEY": "${TOOL_KEY}"}}, "gates": []}
    project = make_project("default")
    shell_target(project)
    run = running(suite_of(project, a={"prompt": script, "criteria": criteria}), targets=["shell"])
    with carrying(run):
        until(lambda: Trial.objects.filter(run=run).exclude(doing="").exists())
        assert run.trial_set.get().doing == "git push [REDACTED]"
        recording.cancel_run(run.pk)


def test_the_heartbeat_writes_down_what_changed_and_only_that():
    claim = claimed(running())
    beat = Heartbeat()
    calls = iter(["", "one", "", "one", "two"])
    beat._tokens[claim.token] = "trial"
    beat.watch(claim.trial_id, claim.token, lambda: next(calls))
    trial = Trial.objects.filter(pk=claim.trial_id)
    for expected in ("as it was", "one", "as it was", "as it was", "two"):
        trial.update(doing="as it was")
        beat._tell()
        assert trial.get().doing == expected


def test_output_that_cannot_be_looked_at_does_not_end_the_heartbeat(caplog):
    claim = claimed(running())
    beat = Heartbeat()

    def look() -> str:
        raise RuntimeError("hostile")

    with beat.holding(claim.token, "trial"):
        beat.watch(claim.trial_id, claim.token, look)
        until(lambda: "hostile" in caplog.text)
        assert beat._thread is not None
        assert beat._thread.is_alive()


def test_nothing_is_told_of_a_token_that_is_not_held():
    beat = Heartbeat()
    beat.watch(1, "gone", lambda: "one")
    assert not beat._watched
    with beat.holding("here", "trial"):
        beat.watch(1, "here", lambda: "")
        assert beat._watched
    assert not beat._watched


@contextmanager
def carrying(run: Run) -> Iterator[None]:
    """Carry a run's trials in another thread meanwhile; the block lets them end."""

    def carry() -> None:
        try:
            lanes.work(run.pk)
        finally:
            connections.close_all()

    carrier = threading.Thread(target=carry)
    carrier.start()
    try:
        yield
    finally:
        recording.cancel_run(run.pk)
        carrier.join(20)


def until(ready: Callable[[], bool], seconds: float = 15.0) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_heartbeats_thread_ends_when_nothing_is_held():
    beat = Heartbeat()
    with beat.holding("x", "trial"):
        thread = beat._thread
    assert thread is not None
    thread.join(5 * heartbeat_module.LOOK_SECONDS)
    assert not thread.is_alive()


def test_ctrl_c_cancels_what_runs_in_this_process(monkeypatch):
    started = launch()

    def interrupted(run_id: int) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(preparation, "prepare_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launching.carry_here(started)
    assert started.runs.get().state == "cancelled"


def test_ctrl_c_in_the_midst_of_a_transaction_leaves_nothing_of_it():
    started = launch()

    def interrupted(run_id: int) -> None:
        transaction.atomic().__enter__()
        Run.objects.filter(pk=run_id).update(tool_version="half done")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launching.carry_here(started, interrupted)
    assert not connection.in_atomic_block
    assert started.runs.get().tool_version == ""


def test_a_target_with_one_place_runs_one_trial_at_a_time_over_all_runs():
    project = make_project()
    definition = {"name": "slow", "provider": "mock", "delay_ms": 30, "workers": 1}
    Target.objects.create(project=project, name="slow", provider="mock", definition=definition, workers=1)
    make_target(project)
    version = make_suite(project, **NO_GATES)
    guidance = [make_guidance(version.suite, name) for name in ("a", "b")]
    started = launch(version, targets=["slow"], guidance=guidance, trials=2, concurrency=2)
    launching.carry_here(started)
    spans = sorted(Trial.objects.values_list("started", "finished"))
    assert all(spans[n][1] <= spans[n + 1][0] for n in range(len(spans) - 1)), spans

"""Time limits, leftovers and a recorder that dies."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from runs.sandbox.sandbox import Level
from tests.runs.processes import nothing_left, unique_seconds
from tests.runs.sandbox.recorded import Place, ends

ALL = (Level.BWRAP, Level.LANDLOCK, Level.LIMITS)


@pytest.fixture(params=ALL, ids=str)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, request.param)


def test_a_call_that_the_time_limit_cuts_has_no_known_end(place: Place) -> None:
    seconds = unique_seconds()
    result, calls = place.run(f"bin/mt fail 2; bin/mt sleep {seconds}", timeout_seconds=1.0)
    assert result.timed_out
    assert result.seconds < 20
    assert ends(calls) == [("2", 2, None), (seconds, None, None)]
    assert nothing_left(seconds)


def test_a_call_that_ignores_the_limits_signal(place: Place) -> None:
    seconds = unique_seconds()
    place.write("bin/mt", f"#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.05; done; : {seconds}\n")
    result, calls = place.run("trap '' TERM; bin/mt; :", timeout_seconds=0.5, grace_seconds=0.3)
    assert result.timed_out
    assert 0.7 < result.seconds < 30
    assert [(call.exit, call.signal) for call in calls] == [(None, None)]
    assert nothing_left(seconds)


def test_what_is_left_behind_has_no_known_end(place: Place) -> None:
    seconds = unique_seconds()
    began = time.monotonic()
    result, calls = place.run(f"bin/mt sleep {seconds} > /dev/null 2>&1 & bin/mt ok a; sleep 0.2; exit 3")
    assert time.monotonic() - began < 20
    assert result.exit_code == 3
    assert sorted(ends(calls)) == sorted([(seconds, None, None), ("a", 0, None)])
    assert nothing_left(seconds)


def test_the_commands_own_end_is_passed_on(place: Place) -> None:
    for command, code in (("exit 7", 7), ("kill -TERM $$", None), ("no-such-program", 127)):
        result, _ = place.run(command)
        assert result.exit_code in ((143, -15) if code is None else (code,))


@pytest.mark.sampled(1)
def test_a_call_that_catches_the_limits_signal(place: Place) -> None:
    """Its exit code says nothing of the tool: evalhub ended it."""
    place.write("bin/mt", "#!/bin/sh\ntrap 'exit 3' TERM\nwhile :; do sleep 0.05; done\n")
    result, calls = place.run("trap '' TERM; bin/mt; :", timeout_seconds=0.6, grace_seconds=1.0)
    assert result.timed_out
    assert [(call.exit, call.signal) for call in calls] == [(None, None)]


def test_a_process_that_escapes_does_not_cost_the_trial(place: Place) -> None:
    """Without namespaces a process can leave its session, parents and variables."""
    seconds = unique_seconds(30.0)
    began = time.monotonic()
    result, calls = place.run(
        f"bin/mt ok a; setsid env -i PATH=$PATH sh bin/mt sleep {seconds} > /dev/null 2>&1 & sleep 0.4"
    )
    assert time.monotonic() - began < 20
    assert result.exit_code == 0
    assert ends(calls) == [("a", 0, None), (seconds, None, None)]


def test_cancelling(place: Place) -> None:
    seconds = unique_seconds()
    began = time.monotonic()
    result, calls = place.run(f"bin/mt sleep {seconds}", cancelled=lambda: time.monotonic() - began > 0.5)
    assert result.cancelled
    assert ends(calls) == [(seconds, None, None)]
    assert nothing_left(seconds)

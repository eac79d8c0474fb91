"""Commands that are ended: late, cancelled, too greedy, or with something left behind."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from runs.sandbox.process import ProcessResult
from runs.sandbox.profiles import ProcessLimits
from tests.runs.processes import nothing_left, pids_with, run, unique_seconds

pytestmark = pytest.mark.one_database


def test_it_ends_a_flood_and_says_so(tmp_path):
    began = time.monotonic()
    result = run("head -c 1000000000 /dev/zero", tmp_path, output_limit=1000, flood_limit=8 << 20)
    assert result.error == "The command printed more than 8 MB and was ended."
    assert result.exit_code != 0
    assert time.monotonic() - began < 20


def test_it_ends_a_command_that_never_ends(tmp_path):
    seconds = unique_seconds()
    began = time.monotonic()
    result = run(f"sleep {seconds}", tmp_path, timeout_seconds=0.3)
    assert result.timed_out
    assert result.error == "The command timed out after 0.3 s and was ended."
    assert time.monotonic() - began < 15
    assert nothing_left(seconds)


def test_it_lets_a_command_clean_up_before_it_is_killed(tmp_path):
    result = run(
        "trap 'echo cleaned; exit 7' TERM; sleep 30 & wait", tmp_path, timeout_seconds=2.0, grace_seconds=5.0
    )
    assert (result.stdout, result.exit_code, result.timed_out) == (b"cleaned\n", 7, True)


@pytest.mark.slow
def test_it_kills_a_command_that_ignores_the_polite_signal(tmp_path):
    seconds = unique_seconds()
    result = run(f"trap '' TERM; while :; do sleep {seconds}; done", tmp_path, timeout_seconds=2.0)
    assert result.exit_code == -9
    assert nothing_left(seconds)


def test_a_cancelled_command_ends_within_seconds(tmp_path):
    asked, seconds = threading.Event(), unique_seconds()
    threading.Timer(0.3, asked.set).start()
    began = time.monotonic()
    result = run(f"trap '' TERM; sleep {seconds}", tmp_path, cancelled=asked.is_set)
    assert result.cancelled
    assert time.monotonic() - began < 10
    assert nothing_left(seconds)


DAEMON = "import os,time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("sleep {n} & exit 0", id="child in the background"),
        pytest.param("sleep {n} >/dev/null 2>&1 & exit 0", id="child without our pipes"),
        pytest.param("setsid sleep {n} & exit 0", id="child in a session of its own"),
        pytest.param(
            f'{sys.executable} -IS -c \'{DAEMON}os.execvp("sleep",["sleep","{{n}}"])\' >/dev/null 2>&1; exit 0',
            id="daemon",
        ),
        pytest.param("for i in 1 2 3; do (setsid sleep {n} >/dev/null 2>&1 &); done; exit 0", id="several"),
    ],
)
@pytest.mark.parametrize("end", ["normal", "timeout"])
def test_it_leaves_nothing_behind(tmp_path, command, end):
    seconds = unique_seconds()
    line = command.format(n=seconds)
    if end == "timeout":
        line = line.replace("exit 0", "sleep 30")
    began = time.monotonic()
    result = run(line, tmp_path, timeout_seconds=0.5 if end == "timeout" else 20)
    assert result.timed_out is (end == "timeout")
    assert time.monotonic() - began < 15
    assert nothing_left(seconds)


def test_it_counts_what_was_left_behind(tmp_path):
    assert run("setsid sleep 30 >/dev/null 2>&1 & sleep 0.1", tmp_path).left_behind == 1
    assert run("sleep 0.01", tmp_path).left_behind == 0


def test_commands_side_by_side_end_their_own_and_no_others(tmp_path):
    seconds = unique_seconds()

    def carry(n: int) -> ProcessResult:
        # Some leave a session behind while the others, younger and older ones, are still at work.
        return run(f"setsid sleep {seconds} >/dev/null 2>&1 & sleep 0.{n + 1}; echo done", tmp_path)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(carry, range(8)))
    assert [result.stdout for result in results] == [b"done\n"] * 8
    assert [result.left_behind for result in results] == [1] * 8
    assert nothing_left(f"sleep\0{seconds}")


def test_it_spares_processes_of_others(tmp_path):
    import subprocess

    other = subprocess.Popen(["sleep", "30"], start_new_session=True)
    try:
        run("sleep 0.05 & setsid sleep 30 & exit 0", tmp_path)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize(
    ("command", "limits", "sentence"),
    [
        pytest.param(
            f"{sys.executable} -c 'x=bytearray(150<<20); import time; time.sleep(30)'",
            ProcessLimits(rss_bytes=100 << 20),
            "more than 100 MB of memory",
            id="memory",
        ),
        pytest.param(
            "for i in 1 2 3 4 5 6; do sleep 30 & done; wait",
            ProcessLimits(processes=4),
            "more than 4 processes",
            id="processes",
        ),
    ],
)
def test_it_ends_a_tree_that_uses_too_much(tmp_path, command, limits, sentence):
    result = run(command, tmp_path, limits=limits)
    assert sentence in result.error
    assert result.exit_code != 0


def test_it_ends_a_command_that_fills_the_disk(tmp_path):
    command = "for i in 1 2 3 4 5 6; do head -c 1000000 /dev/zero > f$i; done; sleep 30"
    result = run(command, tmp_path, limits=ProcessLimits(disk_bytes=3_000_000, disk=(tmp_path,)))
    assert "to disk" in result.error


def test_it_ends_the_command_when_the_caller_is_interrupted(tmp_path):
    seconds = unique_seconds()

    def interrupt() -> bool:
        if pids_with(seconds):
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        run(f"sleep {seconds}", tmp_path, cancelled=interrupt)
    assert nothing_left(seconds)

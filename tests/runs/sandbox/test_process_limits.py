"""What a trial may use of the machine: processes, memory, and its share of the worker's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from runs.errors import ProviderError
from runs.sandbox.process import ProcessResult, run_process
from runs.sandbox.process_io import measure_resident
from runs.sandbox.process_tree import LiveProcess
from runs.sandbox.profiles import AGENT, Caps
from runs.sandbox.sandbox import Containment, Level
from runs.sandbox.worker_settings import memory_of_machine
from runs.targets.providers.registry import OPTIONS
from tests.runs import carried
from tests.runs.carrying import shell_target
from tests.runs.containments import containment
from tests.runs.processes import nothing_left, unique_seconds

LEVELS = [Level.BWRAP, Level.LANDLOCK, Level.LIMITS, Level.OFF]
# Each leaves its session and its parent, as a daemon does.
BOMB = """
import os, time
for _ in range(1500):
    if not os.fork():
        os.setsid()
        if not os.fork():
            time.sleep(SECONDS)
        os._exit(0)
time.sleep(SECONDS)
"""
HOG = """
import os, time
for _ in range(20):
    if not os.fork():
        held = bytearray(b'x') * (100 << 20)
        time.sleep(SECONDS)
time.sleep(SECONDS)
"""
THREADS = """
import threading, time
for _ in range(60):
    threading.Thread(target=time.sleep, args=(1,)).start()
"""
SHARING = """
import os, time
held = bytearray(b'x') * (100 << 20)
for _ in range(8):
    if not os.fork():
        time.sleep(1)
        os._exit(0)
time.sleep(1)
"""


def allowing(level: Level | None = None, **options: int) -> Containment:
    return containment(level).for_target(OPTIONS["cli"](command_template="x", **options))


def run(contained: Containment, folders, program: str, **changes) -> ProcessResult:
    sandbox = contained.around(*folders, profile=AGENT)
    options = {"cwd": folders[0], "env": {}, "timeout_seconds": 30.0, "sandbox": sandbox, **changes}
    return run_process([sys.executable, "-IS", "-c", program], limits=sandbox.limits, **options)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", LEVELS)
def test_a_fork_bomb_is_ended_soon(folders, level):
    seconds = unique_seconds()
    began = time.monotonic()
    result = run(allowing(level), folders, BOMB.replace("SECONDS", seconds))
    assert result.error == "The command ran more than 512 processes at once and was ended."
    assert time.monotonic() - began < 60
    assert nothing_left(seconds, within_seconds=5)


@pytest.mark.parametrize("level", LEVELS)
def test_memory_of_many_processes_is_added_up(folders, level):
    seconds = unique_seconds()
    result = run(allowing(level, max_memory_mb=400), folders, HOG.replace("SECONDS", seconds))
    assert result.error == "The command used more than 400 MB of memory and was ended."
    assert nothing_left(seconds, within_seconds=5)


@pytest.mark.parametrize("level", LEVELS)
def test_threads_are_no_processes(folders, level):
    result = run(allowing(level, max_processes=30), folders, THREADS)
    assert (result.exit_code, result.error) == (0, "")


def test_memory_that_processes_share_counts_once(folders):
    result = run(allowing(max_memory_mb=400), folders, SHARING)
    assert (result.error, result.exit_code) == ("", 0)


def test_memory_of_a_process_that_has_ended_does_not_count():
    with subprocess.Popen(["true"]) as ended:
        listed = LiveProcess(psutil.Process(ended.pid), rss_bytes=500 << 20)
    assert measure_resident([listed], enough=400 << 20) == 0


def test_the_largest_is_ended_when_the_worker_is_full(folders, tmp_path):
    own = psutil.Process().memory_info().rss
    contained = replace(containment(), worker_bytes=own + (500 << 20))
    others = (tmp_path / "other", tmp_path / "others-scratch")
    for folder in others:
        folder.mkdir()
    holding = "held = bytearray(b'x') * ({} << 20); import os, time\nwhile not os.path.exists('go'): time.sleep(0.1)"
    with ThreadPoolExecutor(2) as pool:
        small = pool.submit(run, contained, others, holding.format(200), timeout_seconds=60.0)
        large = pool.submit(run, contained, folders, holding.format(400), timeout_seconds=60.0)
        # It may still be growing when it is measured.
        with pytest.raises(ProviderError, match=r"This one used the most, [234]\d\d MB") as caught:
            large.result()
        (others[0] / "go").touch()
        assert (small.result().exit_code, small.result().error) == (0, "")
    assert "The commands of this worker used more than" in str(caught.value)


def test_its_share_is_given_back_when_a_command_ends(folders):
    own = psutil.Process().memory_info().rss
    contained = replace(containment(), worker_bytes=own + (400 << 20))
    for _ in range(3):
        held = run(contained, folders, "import time; held = bytearray(b'x') * (200 << 20); time.sleep(0.5)")
        assert held.exit_code == 0


@pytest.mark.parametrize("level", LEVELS)
def test_the_kernel_ends_commands_before_the_worker(folders, level):
    command = "import time; time.sleep(0.2); print(open('/proc/self/oom_score_adj').read())"
    score = int(run(allowing(level), folders, command).stdout)
    assert score >= 500 > int(Path(f"/proc/{os.getpid()}/oom_score_adj").read_text())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_processes": 513}, "max_processes 513, and this worker allows 512"),
        ({"max_memory_mb": 5000}, "max_memory_mb 5,000, and this worker allows 4,096"),
    ],
    ids=["processes", "memory"],
)
def test_a_target_gets_no_more_than_the_operator_allows(options, message):
    with pytest.raises(ProviderError, match=message) as caught:
        allowing(**options)
    assert caught.value.kind == "configuration"


def test_the_operator_may_allow_more_and_less():
    more = replace(containment(Level.OFF), caps=Caps(2000, 9000))
    options = OPTIONS["cli"](command_template="x", max_processes=1500, max_memory_mb=8000)
    assert (more.for_target(options).agent.processes, more.for_target(options).agent.rss_bytes) == (
        1500,
        8000 << 20,
    )
    less = replace(containment(Level.OFF), caps=Caps(100, 1000))
    plain = less.for_target(OPTIONS["cli"](command_template="x")).agent
    assert (plain.processes, plain.rss_bytes) == (100, 1000 << 20)


@pytest.mark.parametrize(("text", "expected"), [("1073741824\n", 1 << 30), ("max\n", None), ("9" * 19, None)])
def test_a_containers_limit_counts_as_its_memory(tmp_path, text, expected):
    (tmp_path / "memory.max").write_text(text)
    machine = psutil.virtual_memory().total
    assert memory_of_machine((tmp_path / "memory.max",)) == (expected or machine)
    assert memory_of_machine((tmp_path / "missing",)) == machine


@pytest.mark.django_db(transaction=True)
def test_a_trial_says_which_limit_it_hit():
    project = carried.make_project("default")
    shell_target(project, max_processes=20)
    seconds = unique_seconds()
    sleepers = f"for i in $(seq 30); do sleep {seconds} & done; wait"
    trials = carried.carried(project, agent={"prompt": sleepers}, setup={"setup": [sleepers]})
    message = "The command ran more than 20 processes at once and was ended"
    assert any(message in note for note in trials["agent"].detail["notes"])
    assert trials["setup"].outcome == "error"
    assert message in trials["setup"].error
    assert nothing_left(seconds)

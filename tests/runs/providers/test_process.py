from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runs.profiles import Limits
from runs.providers.base import ProviderError
from runs.providers.process import ProcessResult, run_process
from tests.runs.processes import ENV, nothing_left, open_descriptors, pids_with


def run(command, tmp_path: Path, **changes) -> ProcessResult:
    options = {"cwd": tmp_path, "env": ENV, "timeout_seconds": 20.0, **changes}
    return run_process(command, **options)


def test_it_works(tmp_path):
    result = run("echo out; echo err >&2; exit 3", tmp_path)
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert sorted(result.output.split()) == [b"err", b"out"]
    assert result.error == ""


def test_it_takes_a_list_of_arguments_without_a_shell(tmp_path):
    assert (
        run([sys.executable, "-c", "import sys; print(sys.argv[1])", "$HOME"], tmp_path).stdout == b"$HOME\n"
    )


def test_it_merges_the_streams_in_order(tmp_path):
    result = run("echo 1; echo 2 >&2; echo 3; echo 4 >&2", tmp_path, merge_stderr=True)
    assert result.output == result.stdout == b"1\n2\n3\n4\n"


def test_it_keeps_bytes_that_are_not_text(tmp_path):
    assert run(r"printf '\377\376\000x'", tmp_path).stdout == b"\xff\xfe\x00x"


def test_it_gives_the_command_only_the_environment_that_is_passed(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKERS_SECRET", "not for agents")
    output = run("env", tmp_path, env={"PATH": ENV["PATH"], "GIVEN": "yes"}).stdout.decode()
    assert "GIVEN=yes" in output
    assert "WORKERS_SECRET" not in output


def test_it_feeds_more_than_a_pipe_holds_without_a_deadlock(tmp_path):
    text = b"0123456789abcdef" * 200_000
    assert run("cat", tmp_path, stdin=text).stdout == text


def test_it_does_not_mind_a_command_that_leaves_its_input_unread(tmp_path):
    assert run("exit 0", tmp_path, stdin=b"x" * 1_000_000).exit_code == 0


def test_it_closes_the_input_of_a_command_that_gets_none(tmp_path):
    assert run("cat", tmp_path).exit_code == 0


def test_it_keeps_head_and_tail_of_a_long_output(tmp_path):
    result = run("echo first; seq 100000; echo last", tmp_path, output_limit=1000)
    assert result.truncated
    assert result.stdout.startswith(b"first\n")
    assert result.stdout.endswith(b"last\n")
    assert b"bytes left out" in result.stdout
    assert len(result.stdout) < 1100


def test_it_ends_a_flood_and_says_so(tmp_path):
    began = time.monotonic()
    result = run("head -c 1000000000 /dev/zero", tmp_path, output_limit=1000, flood_limit=8 << 20)
    assert result.error == "The command printed more than 8 MB and was ended."
    assert result.exit_code != 0
    assert time.monotonic() - began < 5


def test_it_writes_the_output_to_a_file_as_it_comes(tmp_path):
    seen: list[bytes] = []
    log = tmp_path / "log"

    def look() -> bool:
        if log.exists() and log.read_bytes():
            seen.append(log.read_bytes())
        return bool(seen)

    run("echo early; sleep 30", tmp_path, stream_to=log, cancelled=look)
    assert seen == [b"early\n"]


def test_it_ends_a_command_that_never_ends(tmp_path):
    began = time.monotonic()
    result = run("sleep 31.4151", tmp_path, timeout_seconds=0.3)
    assert result.timed_out
    assert result.error == "The command timed out after 0.3 s and was ended."
    assert time.monotonic() - began < 2
    assert nothing_left("31.4151")


def test_it_lets_a_command_clean_up_before_it_is_killed(tmp_path):
    result = run(
        "trap 'echo cleaned; exit 7' TERM; sleep 30 & wait", tmp_path, timeout_seconds=0.3, grace_seconds=5.0
    )
    assert (result.stdout, result.exit_code, result.timed_out) == (b"cleaned\n", 7, True)


def test_it_kills_a_command_that_ignores_the_polite_signal(tmp_path):
    result = run("trap '' TERM; while :; do sleep 31.4152; done", tmp_path, timeout_seconds=0.3)
    assert result.exit_code == -9
    assert nothing_left("31.4152")


def test_it_cancels_within_half_a_second(tmp_path):
    asked = threading.Event()
    threading.Timer(0.3, asked.set).start()
    began = time.monotonic()
    result = run("trap '' TERM; sleep 31.4153", tmp_path, cancelled=asked.is_set)
    assert result.cancelled
    assert time.monotonic() - began < 0.3 + 0.5
    assert nothing_left("31.4153")


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
    number = f"31.{abs(hash((command, end))) % 10**9}"
    line = command.format(n=number)
    if end == "timeout":
        line = line.replace("exit 0", "sleep 30")
    began = time.monotonic()
    result = run(line, tmp_path, timeout_seconds=0.5 if end == "timeout" else 20)
    assert result.timed_out is (end == "timeout")
    assert time.monotonic() - began < 4
    assert nothing_left(number)


def test_it_counts_what_was_left_behind(tmp_path):
    assert run("setsid sleep 31.4154 >/dev/null 2>&1 & sleep 0.1", tmp_path).left_behind == 1
    assert run("sleep 0.01", tmp_path).left_behind == 0


def test_commands_side_by_side_end_their_own_and_no_others(tmp_path):
    def carry(n: int) -> ProcessResult:
        # Some leave a session behind while the others, younger and older ones, are still at work.
        return run(f"setsid sleep 31.41{60 + n} >/dev/null 2>&1 & sleep 0.{n + 1}; echo done", tmp_path)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(carry, range(8)))
    assert [result.stdout for result in results] == [b"done\n"] * 8
    assert [result.left_behind for result in results] == [1] * 8
    assert nothing_left("sleep\00031.416")


def test_it_spares_processes_of_others(tmp_path):
    import subprocess

    other = subprocess.Popen(["sleep", "31.4155"], start_new_session=True)
    try:
        run("sleep 0.05 & setsid sleep 30 & exit 0", tmp_path)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        pytest.param(["/no/such/program"], "there is no program /no/such/program", id="missing"),
        pytest.param(["/etc/passwd"], "/etc/passwd may not be executed", id="not executable"),
        pytest.param(["/bin/echo", "x" * 3_000_000], "longer than the system allows", id="too long"),
        pytest.param(["/bin/echo", "a\0b"], "null byte", id="NUL"),
    ],
)
def test_it_says_why_a_command_cannot_start(tmp_path, command, said):
    with pytest.raises(ProviderError, match="cannot start") as caught:
        run(command, tmp_path)
    assert said in str(caught.value)
    assert caught.value.kind == "start"
    assert str(caught.value).endswith(".")


def test_it_says_that_the_working_directory_is_missing(tmp_path):
    with pytest.raises(ProviderError, match=r"working directory .*/gone does not exist"):
        run("true", tmp_path / "gone")


@pytest.mark.parametrize(
    ("command", "limits", "said"),
    [
        pytest.param(
            f"{sys.executable} -c 'x=bytearray(150<<20); import time; time.sleep(30)'",
            Limits(rss_bytes=100 << 20),
            "more than 100 MB of memory",
            id="memory",
        ),
        pytest.param(
            "for i in 1 2 3 4 5 6; do sleep 30 & done; wait",
            Limits(processes=4),
            "more than 4 processes",
            id="processes",
        ),
    ],
)
def test_it_ends_a_tree_that_uses_too_much(tmp_path, command, limits, said):
    result = run(command, tmp_path, limits=limits)
    assert said in result.error
    assert result.exit_code != 0


def test_it_ends_a_command_that_fills_the_disk(tmp_path):
    command = "for i in 1 2 3 4 5 6; do head -c 1000000 /dev/zero > f$i; done; sleep 30"
    result = run(command, tmp_path, limits=Limits(disk_bytes=3_000_000, disk=tmp_path))
    assert "to the workspace" in result.error


def test_it_holds_no_descriptors_after_many_commands(tmp_path):
    run("true", tmp_path)
    before = open_descriptors()
    for _ in range(100):
        run("echo x", tmp_path, stdin=b"y")
        with pytest.raises(ProviderError):
            run(["/no/such/program"], tmp_path)
    assert open_descriptors() == before


def test_it_ends_the_command_when_the_caller_is_interrupted(tmp_path):
    def interrupt() -> bool:
        if pids_with("31.4156"):
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        run("sleep 31.4156", tmp_path, cancelled=interrupt)
    assert nothing_left("31.4156")

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from runs.errors import ProviderError
from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT, COMMAND
from runs.sandbox.sandbox import Containment, Level, Machine, Policy, Sandbox
from tests.runs.containments import PATH, containment
from tests.runs.processes import nothing_left, pids_with, unique_seconds

pytestmark = pytest.mark.one_database

CONTAINED = [Level.BWRAP, Level.LANDLOCK]
LEVELS = [Level.BWRAP, Level.LANDLOCK, Level.LIMITS, Level.OFF]


def run(sandbox: Sandbox, command: str, **changes):
    options = {"cwd": sandbox.workspace, "env": {}, "timeout_seconds": 20.0, "sandbox": sandbox, **changes}
    return run_process(command, limits=sandbox.limits, **options)


@pytest.mark.parametrize("level", LEVELS)
def test_it_works(folders, level):
    sandbox = containment(level).around(*folders)
    result = run(sandbox, 'echo hi > made; echo "$GIVEN"; pwd', env={"GIVEN": "yes"})
    assert result.stdout.decode().split() == ["yes", sandbox.inside(folders[0])]
    assert (folders[0] / "made").read_text() == "hi\n"
    assert sandbox.level == level


@pytest.mark.parametrize("level", LEVELS)
def test_a_folder_on_path_that_cannot_be_looked_at_is_left_out(folders, level, caplog):
    # Its name is too long for any user; a folder in one that others may not enter fails alike.
    unreadable = f"/opt/{level}{'x' * 300}"
    here = replace(containment(level), path=f"{unreadable}:{PATH}")
    assert run(here.around(*folders), "echo works").stdout == b"works\n"
    if level in CONTAINED:
        assert f"{unreadable} on PATH or among the readable folders is left out" in caplog.text


@pytest.mark.parametrize("level", CONTAINED)
def test_it_hides_the_files_of_the_host(folders, level, tmp_path):
    (tmp_path / "secret").write_text("hunter2")
    result = run(
        containment(level).around(*folders), f"cat {tmp_path}/secret; cat /etc/shadow; ls {Path.home()}/.ssh"
    )
    assert result.stdout == b""
    assert result.exit_code != 0


@pytest.mark.parametrize("level", CONTAINED)
@pytest.mark.parametrize("place", ["/usr/made", "/etc/made", "/made", sys.prefix + "/made"])
def test_it_writes_nowhere_else(folders, level, place):
    result = run(containment(level).around(*folders), f"echo x > {place}")
    assert result.exit_code != 0
    assert not Path(place).exists()


@pytest.mark.parametrize("level", CONTAINED)
@pytest.mark.parametrize("network", [True, False])
def test_it_has_the_network_only_when_asked(folders, level, network):
    server = socket.create_server(("127.0.0.1", 0))
    with server:
        port = server.getsockname()[1]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=3)"
        sandbox = containment(level).around(*folders, network=network)
        result = run(sandbox, f'{sys.executable} -c "{connect}"')
    assert (result.exit_code == 0) is network


@pytest.mark.parametrize("level", LEVELS)
def test_an_agent_has_its_own_home_unless_it_is_off(folders, level):
    result = run(
        containment(level).around(*folders, profile=AGENT),
        'echo "$HOME"; ls -A "$HOME" | wc -l; test -w "$HOME" && echo writable',
    )
    path, entries, writable = result.stdout.decode().split()
    assert (path == str(Path.home())) is (level is Level.OFF)
    assert level is Level.OFF or entries == "0"
    assert writable == "writable"


def test_it_shows_the_processes_of_the_sandbox_only(folders):
    result = run(containment(Level.BWRAP).around(*folders), "ls -d /proc/[0-9]* | wc -l")
    assert int(result.stdout) < 8


def test_it_keeps_the_workers_environment_from_a_confined_command(folders):
    result = run(containment(Level.LANDLOCK).around(*folders), f"cat /proc/{os.getpid()}/environ")
    assert result.stdout == b""


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK, Level.LIMITS])
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("head -c 80000000 /dev/zero > big", id="large file"),
        pytest.param(f"{sys.executable} -c 'bytearray(3 << 30)'", id="much memory"),
        pytest.param(f"{sys.executable} -c 'x = [open(\"/dev/null\") for _ in range(300)]'", id="many files"),
    ],
)
def test_it_limits_a_command(folders, level, command):
    assert run(containment(level).around(*folders, profile=COMMAND), command).exit_code != 0
    big = folders[0] / "big"
    assert not big.exists() or big.stat().st_size <= 64 << 20


def test_it_lets_an_agent_write_larger_files(folders):
    sandbox = containment().around(*folders, profile=AGENT)
    assert run(sandbox, "head -c 80000000 /dev/zero > big").exit_code == 0


@pytest.mark.parametrize(("profile", "allowed"), [(AGENT, True), (COMMAND, False)], ids=["agent", "command"])
def test_it_lets_only_agents_make_namespaces(folders, profile, allowed):
    result = run(containment(Level.BWRAP).around(*folders, profile=profile), "unshare -U true")
    assert (result.exit_code == 0) is allowed


@pytest.mark.parametrize("level", LEVELS)
def test_it_returns_the_paths_as_seen_inside(folders, level):
    workspace, scratch = folders
    sandbox = containment(level).around(workspace, scratch)
    (workspace / "a").mkdir()
    (workspace / "a" / "b.txt").write_text("1")
    (scratch / "events").write_text("2")
    seen = f"{sandbox.inside(workspace / 'a' / 'b.txt')} {sandbox.inside(scratch / 'events')}"
    assert run(sandbox, f"cat {seen}").stdout == b"12"
    assert sandbox.inside(Path("/usr/bin")) == "/usr/bin"
    beside = workspace.with_name(f"{workspace.name}-beside") / "a"
    assert sandbox.inside(beside) == str(beside)


@pytest.mark.parametrize("level", CONTAINED)
def test_it_shows_further_folders_when_asked(folders, level, tmp_path):
    for name in ("read", "write", "global"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    base = containment(level)
    opened = Containment(base.policy, base.machine, base.path, (tmp_path / "global",))
    sandbox = opened.around(*folders, readable=[tmp_path / "read"], writable=[tmp_path / "write"])
    files = " ".join(str(tmp_path / name / "f") for name in ("read", "write", "global"))
    result = run(sandbox, f"cat {files}; echo x > {tmp_path}/write/g; echo x > {tmp_path}/read/g")
    assert result.stdout == b"readwriteglobal"
    assert (tmp_path / "write" / "g").exists()
    assert not (tmp_path / "read" / "g").exists()


def test_it_shows_the_tool_under_test_behind_its_link(folders, tmp_path):
    real = tmp_path / "elsewhere" / "taskmgr"
    real.parent.mkdir()
    real.write_text("#!/bin/sh\necho works\n")
    real.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "taskmgr").symlink_to(real)
    base = containment(Level.BWRAP)
    opened = Containment(base.policy, base.machine, f"{tmp_path}/bin:{PATH}")
    assert run(opened.around(*folders), "taskmgr").exit_code == 127
    assert run(opened.around(*folders, tool="taskmgr"), "taskmgr").stdout == b"works\n"


@pytest.mark.parametrize("level", LEVELS)
def test_it_ends_what_a_command_leaves(folders, level):
    seconds, sandbox = unique_seconds(), containment(level).around(*folders, profile=AGENT)
    run(sandbox, f"setsid sleep {seconds} >/dev/null 2>&1 & exit 0")
    assert nothing_left(f"sleep\0{seconds}")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", LEVELS)
def test_it_lets_a_command_clean_up_on_timeout(folders, level):
    seconds = unique_seconds()
    result = run(
        containment(level).around(*folders, profile=AGENT),
        f"trap 'echo cleaned; exit 7' TERM; sleep {seconds} & wait",
        timeout_seconds=2.0,
        grace_seconds=5.0,
    )
    assert result.stdout == b"cleaned\n"
    assert nothing_left(f"sleep\0{seconds}")


def test_it_leaves_nothing_when_the_worker_is_killed(folders):
    containment(Level.BWRAP)
    seconds = unique_seconds()
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.runs.containments import containment\n"
        "from runs.sandbox.process import run_process\n"
        "sandbox = containment().around(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        f"command = 'setsid sleep {seconds} & sleep {seconds}'\n"
        "run_process(command, cwd=sandbox.workspace, env={}, timeout_seconds=60, sandbox=sandbox)\n"
    )
    root = Path(__file__).parents[3]
    worker = subprocess.Popen([sys.executable, "-c", program, *map(str, folders)], cwd=root)
    until = time.monotonic() + 20
    while len(pids_with(f"sleep\0{seconds}")) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    assert len(pids_with(f"sleep\0{seconds}")) == 2
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert nothing_left(seconds, within_seconds=3)


@pytest.mark.parametrize(
    ("machine", "refused"),
    [
        pytest.param(Machine("/usr/bin/bwrap", 0, limits=True), False, id="bubblewrap"),
        pytest.param(Machine("", 4, limits=True), False, id="landlock"),
        pytest.param(Machine("", 0, limits=True), True, id="limits only"),
        pytest.param(Machine(), True, id="nothing"),
    ],
)
def test_require_refuses_where_nothing_contains(folders, machine, refused):
    required = Containment(Policy.REQUIRE, machine, PATH)
    assert bool(required.problem) is refused
    if not refused:
        assert required.around(*folders)
        return
    with pytest.raises(ProviderError, match="Install bubblewrap") as caught:
        required.around(*folders)
    assert caught.value.kind == "configuration"


def test_off_is_off_even_where_a_sandbox_would_work(folders):
    off = containment(policy=Policy.OFF)
    assert off.level is Level.OFF
    assert run(off.around(*folders), "pwd").stdout.decode().strip() == str(folders[0])

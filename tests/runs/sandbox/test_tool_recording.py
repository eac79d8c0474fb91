"""Every execution of the tool is recorded, whatever starts it, and the tool runs unchanged."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from evaluators.tool_use.recorded_commands import Caller, RecordedCall, origin_of
from runs.errors import ProviderError
from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.recording.launcher import build_filter
from runs.sandbox.recording.record import RecordedTool, ToolRecord, list_program_places
from runs.sandbox.sandbox import Level
from tests.layer1.own_log import install
from tests.layer1.recorded import LOG, run_recorded
from tests.runs.containments import containment

Folders = tuple[Path, Path]
LEVELS = [Level.BWRAP, Level.LANDLOCK, Level.LIMITS]


def ends(record: tuple[RecordedCall, ...]) -> list[tuple[str, int | None, int | None]]:
    """Return the words, exit codes and signals of the calls."""
    return [(" ".join(call.argv[1:]), call.exit, call.signal) for call in record]


@pytest.mark.parametrize("level", LEVELS)
def test_calls_and_ends_are_recorded(folders: Folders, level: Level) -> None:
    command = (
        "./mt ok a | cat; ./mt fail 3 || ./mt quiet 2; ./mt ok b & wait; x=$(./mt ok c); bash -c './mt ok d'"
    )
    result, record = run_recorded(command, folders, within=containment(level))
    assert result.exit_code == 0
    assert ends(record) == [
        ("ok a", 0, None),
        ("fail 3", 3, None),
        ("quiet 2", 2, None),
        ("ok b", 0, None),
        ("ok c", 0, None),
        ("ok d", 0, None),
    ]
    assert {call.how for call in record} == {"file"}
    assert all(origin_of(call).caller is Caller.MODEL for call in record)


@pytest.mark.parametrize(
    ("command", "how"),
    [
        ("./mt ok", "file"),
        ("ln -s mt linked && ./linked ok", "file"),
        ("ln mt hard && ./hard ok", "file"),
        ("cp mt /tmp/copied && /tmp/copied ok", "copy"),
        (f"{sys.executable} ./mt ok", "argument"),
        (f"{sys.executable} -IS mt ok", "argument"),
        ("env -i ./mt ok", "file"),
        ("cp mt mt.new && mv mt.new mt && ./mt ok", "file"),
        ("mv mt x; printf '#!/bin/sh\\necho built\\n' > mt; chmod +x mt; ./mt ok", "file"),
        ("bash -c 'exec -a other ./mt ok'", "file"),
    ],
    ids=[
        "path",
        "symlink",
        "hard link",
        "copy",
        "interpreter",
        "options",
        "env",
        "replaced",
        "rebuilt",
        "other name",
    ],
)
def test_the_tool_is_recognized(folders: Folders, command: str, how: str) -> None:
    _, record = run_recorded(command, folders)
    assert record
    assert {call.how for call in record} == {how}


def test_other_programs_are_not_recorded(folders: Folders) -> None:
    _, record = run_recorded(
        "ls; cat mt > /dev/null; grep -c mt mt; printf '#!/bin/sh\\n' > /tmp/mt; sh /tmp/mt", folders
    )
    assert record == ()


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK])
def test_it_says_who_asked_and_what_the_agent_wrote(folders: Folders, level: Level) -> None:
    (folders[0] / "given.sh").write_text("./mt ok given\n")
    command = "echo './mt ok written' > own.sh; sh own.sh; sh given.sh; true"
    (folders[0] / "agent.sh").write_text(f'bash -c "{command}"\n:\n')
    _, record = run_recorded("sh agent.sh", folders, within=containment(level))
    written, given = record
    assert (
        written.asker and written.asker.script.rsplit("/", 1)[-1],
        written.asker and written.asker.written,
    ) == ("own.sh", True)
    assert (given.asker and given.asker.script.rsplit("/", 1)[-1], given.asker and given.asker.written) == (
        "given.sh",
        False,
    )
    assert [origin_of(call).caller for call in record] == [Caller.MODEL, Caller.PROGRAM]
    assert origin_of(given).program == "given.sh"


def test_what_the_tool_starts_is_its_own(folders: Folders) -> None:
    workspace = folders[0]
    (workspace / "mt").write_text('#!/bin/sh\n[ "$1" = inner ] || ./mt inner\n')
    (workspace / "mt").chmod(0o755)
    _, record = run_recorded("./mt outer; true", folders)
    assert [(call.argv[1], call.within) for call in record] == [("outer", None), ("inner", 1)]
    assert origin_of(record[1]).caller is Caller.TOOL


@pytest.mark.slow
def test_parallel_calls_are_all_recorded(folders: Folders) -> None:
    _, record = run_recorded("seq 80 | xargs -P8 -n1 sh -c './mt quiet $(($1 % 100))' x", folders)
    assert sorted(call.exit or 0 for call in record) == sorted(n % 100 for n in range(1, 81))


def test_signals_of_others_are_ends(folders: Folders) -> None:
    command = "timeout 0.2 ./mt sleep 9; timeout -s KILL 0.2 ./mt sleep 9; ./mt sleep 9 & sleep 0.2; kill -TERM $!; wait; sleep 0.3"
    _, record = run_recorded(command, folders)
    assert [call.signal for call in record] == [signal.SIGTERM, signal.SIGKILL, signal.SIGTERM]


@pytest.mark.parametrize("level", LEVELS)
def test_the_time_limit_makes_an_end_unknown(folders: Folders, level: Level) -> None:
    began = time.monotonic()
    result, record = run_recorded(
        "./mt ok; ./mt sleep 30; ./mt ok", folders, seconds=1.0, within=containment(level)
    )
    assert result.timed_out
    assert time.monotonic() - began < 15
    assert ends(record) == [("ok", 0, None), ("sleep 30", None, None)]


def test_a_call_that_the_agent_leaves_behind_ends_unknown(folders: Folders) -> None:
    _, record = run_recorded("./mt sleep 30 & sleep 0.3", folders)
    assert ends(record) == [("sleep 30", None, None)]


def test_the_tool_runs_unchanged(folders: Folders) -> None:
    workspace = folders[0]
    (workspace / "mt").write_text('#!/bin/sh\necho "$0 $# $(cat)"; kill -STOP $$; exit 7\n')
    (workspace / "mt").chmod(0o755)
    command = "echo in | ./mt a b & sleep 0.3; kill -CONT $(pgrep -f '[.]/mt a'); wait $!; echo $?"
    result, record = run_recorded(command, folders)
    assert result.stdout.decode().split() == ["./mt", "2", "in", "7"]
    assert ends(record) == [("a b", 7, None)]


def test_nobody_inside_sees_the_recorder(folders: Folders) -> None:
    result, _ = run_recorded("ls /proc/self/fd | wc -l; cat /proc/self/environ; ./mt ok", folders)
    assert b"recorder" not in result.stdout
    # Standard streams and the listing itself.
    assert int(result.stdout.split()[0]) == 4


def test_a_recorder_that_dies_ends_the_trial(folders: Folders) -> None:
    workspace, scratch = folders
    sandbox = containment().around(workspace, scratch, profile=AGENT)
    inside = sandbox.inside(workspace)
    install(workspace, Path(inside) / LOG)
    record = ToolRecord(RecordedTool("mt", (f"{inside}/mt",)), workspace, inside, ())

    def end_recorder() -> None:
        until = time.monotonic() + 5
        while time.monotonic() < until and not (found := _recorder()):
            time.sleep(0.02)
        os.kill(found, signal.SIGKILL)

    killer = threading.Timer(0.3, end_recorder)
    killer.start()
    with pytest.raises(ProviderError, match="ended before the agent") as caught:
        run_process(
            "sleep 20",
            cwd=workspace,
            env={},
            timeout_seconds=20,
            limits=sandbox.limits,
            sandbox=sandbox,
            record=record,
        )
    assert caught.value.kind == "recording"


def _recorder() -> int:
    """Return a recorder of this process: what its child forked."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"recording/recorder.py" in (folder / "cmdline").read_bytes():
                status = (folder / "status").read_text()
                parents[int(folder.name)] = int(status.split("PPid:\t")[1].split()[0])
    return next((pid for pid, parent in parents.items() if parents.get(parent) == os.getpid()), 0)


def test_a_tracer_of_the_agents_own_hides_nothing(folders: Folders) -> None:
    """As `strace ./mt` does: a process that is traced already can't be attached."""
    tracer = (
        "import ctypes, os; pid = os.fork()\n"
        "if not pid:\n ctypes.CDLL(None).ptrace(0, 0, None, None); os.execv('./mt', ['./mt', 'quiet', '5'])\n"
        "while True:\n"
        " _, state = os.waitpid(pid, 0)\n"
        " if os.WIFEXITED(state): break\n"
        " ctypes.CDLL(None).ptrace(7, pid, None, None)\n"
    )
    (folders[0] / "trace.py").write_text(tracer)
    _, record = run_recorded(f"{sys.executable} trace.py", folders)
    assert [call.argv[1:] for call in record] == [("quiet", "5")]


def test_a_filter_has_whole_instructions() -> None:
    assert len(build_filter()) % 8 == 0


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("./bin/mt", ("/workspace/bin/mt",)),
        ("/usr/bin/mt", ("/usr/bin/mt",)),
        ("mt", ("/usr/bin/mt", "/bin/mt")),
    ],
)
def test_a_tool_has_its_places(named: str, expected: tuple[str, ...]) -> None:
    assert list_program_places(named, "/workspace", "/usr/bin:/bin") == expected

"""Every execution of the tool is recorded from outside the sandbox, with its true end."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runs.sandbox.sandbox import Level
from tests.requirements import missing
from tests.runs.sandbox.recorded import Place, ends

BOTH = (Level.BWRAP, Level.LANDLOCK)


@pytest.fixture(params=BOTH, ids=str)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, request.param)


@pytest.fixture
def within_bwrap(tmp_path: Path) -> Place:
    return Place(tmp_path, Level.BWRAP)


FORMS = {
    "bin/mt fail 3 | cat": [("3", 3, None)],
    "bin/mt fail 4 || bin/mt ok b": [("4", 4, None), ("b", 0, None)],
    "bin/mt fail 5; bin/mt ok c": [("5", 5, None), ("c", 0, None)],
    "bin/mt fail 2 && bin/mt ok never": [("2", 2, None)],
    "for i in a b c; do bin/mt ok $i; done": [("a", 0, None), ("b", 0, None), ("c", 0, None)],
    "x=$(bin/mt fail 6); (bin/mt ok d)": [("6", 6, None), ("d", 0, None)],
    "bin/mt fail 7 & wait": [("7", 7, None)],
    "env A=1 nice bin/mt ok e": [("e", 0, None)],
    "timeout 0.2 bin/mt sleep 9": [("9", None, 15)],
    "timeout -s KILL 0.2 bin/mt sleep 9; sleep 0.5": [("9", None, 9)],
    "bin/mt die SEGV": [("SEGV", None, 11)],
    "exec bin/mt fail 8": [("8", 8, None)],
    "cat bin/mt; echo bin/mt ok; grep -c mt bin/mt; command -v bin/mt; ./missing": [],
}


@pytest.mark.parametrize("command", FORMS)
def test_forms_of_the_shell(place: Place, command: str) -> None:
    _, calls = place.run(command)
    assert ends(calls) == FORMS[command]
    assert all(call.cwd == place.inside("").rstrip("/") for call in calls)


def test_parallel_calls(place: Place) -> None:
    _, calls = place.run("seq 1 60 | xargs -P8 -n1 bin/mt fail")
    assert sorted((int(word), code) for word, code, _ in ends(calls)) == [(n, n) for n in range(1, 61)]


def test_five_hundred_calls(within_bwrap: Place) -> None:
    _, calls = within_bwrap.run("i=0; while [ $i -lt 500 ]; do bin/mt fail $((i % 7)); i=$((i+1)); done")
    assert [call.exit for call in calls] == [n % 7 for n in range(500)]
    assert [call.n for call in calls] == list(range(1, 501))


def test_stopped_and_continued(place: Place) -> None:
    script = "bin/mt sleep 0.3 & p=$!; sleep 0.1; kill -STOP $p; sleep 0.4; kill -CONT $p; wait $p; echo $?"
    result, calls = place.run(script)
    assert result.stdout == b"0\n"
    assert [(call.exit, (call.seconds or 0) > 0.4) for call in calls] == [(0, True)]


def test_the_program_runs_as_without_a_recorder(place: Place) -> None:
    place.write("lib", "echo from lib\n")
    place.write(
        "bin/tool",
        '#!/bin/sh\necho "$0 $#"; . "$(dirname "$0")/../lib"; cat; trap "echo trapped" TERM; kill $$\n',
    )
    result, calls = place.run("echo given | bin/tool a b; (yes; echo $? >&2) | head -1", tool="bin/tool")
    assert result.stdout == b"bin/tool 2\nfrom lib\ngiven\ntrapped\ny\n"
    assert result.stderr == b"141\n"
    assert ends(calls) == [("b", 0, None)]


def test_other_files_that_are_the_tool(place: Place) -> None:
    script = """
    ln -s bin/mt link; ln bin/mt hard; cp bin/mt copy; mkdir other; printf '#!/bin/sh\\nexit 3\\n' > other/mt; chmod +x other/mt
    ./link fail 1; ./hard fail 2; ./copy fail 3; other/mt ok 4; sh bin/mt fail 5; sh -e ./copy fail 6
    """
    _, calls = place.run(script)
    assert [(call.how, call.exit) for call in calls] == [
        ("file", 1),
        ("file", 2),
        ("copy", 3),
        ("argument", 5),
        ("argument", 6),
    ]


@pytest.mark.sampled(1)
def test_a_tool_of_an_interpreter(place: Place) -> None:
    place.write("tool.py", "#!/usr/bin/env python3\nimport sys; sys.exit(int(sys.argv[1]))\n")
    place.write("pkg/__init__.py", "")
    place.write("pkg/__main__.py", "import sys; sys.exit(int(sys.argv[1]))\n")
    _, calls = place.run(
        "python3 tool.py 3; python3 -W ignore ./tool.py 4; ./tool.py 5; python3 -c 1", "tool.py"
    )
    assert [(call.how, call.exit) for call in calls] == [("argument", 3), ("argument", 4), ("file", 5)]
    _, calls = place.run("python3 -m pkg 6; python3 -Im pkg 7; python3 -m json.tool x", "pkg", is_module=True)
    assert [(call.how, call.exit) for call in calls] == [("module", 6), ("module", 1)]


def test_a_tool_of_node(place: Place) -> None:
    if not shutil.which("node"):
        missing("node", "There is no node.")
    place.write("cli.js", "#!/usr/bin/env node\nprocess.exit(Number(process.argv[2]))\n")
    _, calls = place.run("node cli.js 3; node --no-warnings ./cli.js 4; ./cli.js 5; node -e 1", "cli.js")
    assert [call.exit for call in calls] == [3, 4, 5]


def test_a_name_on_path(place: Place) -> None:
    _, calls = place.run("cp bin/mt mytrue; true; /usr/bin/true; env true; ./mytrue ok; false", "true")
    assert [call.path for call in calls] == ["/usr/bin/true", "/usr/bin/true"]


def test_one_of_a_programs_many_names(place: Place) -> None:
    """A link to a program of many names is the tool by its own name only."""
    place.write("many", '#!/bin/sh\necho "$0"\n')
    script = "ln -s many one; ln -s many two; ./one; ./two; ./many; bin/../one"
    _, calls = place.run(f"{script}; ./one", "./one")
    assert [call.path for call in calls] == ["./one", "bin/../one", "./one"]


def test_a_tool_that_is_built_during_the_trial(place: Place) -> None:
    _, calls = place.run(
        "build/new; mkdir build; cp bin/mt build/new; build/new fail 3; rm build/new; build/new", "build/new"
    )
    assert [(call.how, call.exit) for call in calls] == [("file", 3)]
    _, calls = place.run(
        "mkdir -p .venv/bin; cp bin/mt .venv/bin/new; PATH=$PWD/.venv/bin:$PATH; new fail 4", "new"
    )
    assert [(call.how, call.exit) for call in calls] == [("name", 4)]


def test_what_the_tool_starts_is_its_own(place: Place) -> None:
    _, calls = place.run("bin/mt again; bin/mt ok last")
    assert [(call.argv[-1], call.within) for call in calls] == [("again", None), ("inner", 1), ("last", None)]


def test_who_asked(place: Place) -> None:
    """Parents lead up to the agent's first process; the asker is known although bash is replaced by its last command."""
    place.write("fixture.sh", "bin/mt ok fixture\n")
    place.write("Makefile", "test:\n\t@bin/mt ok make\n")
    text = "bash -c 'bin/mt ok inline'; printf 'bin/mt ok written\\n' > own.sh; sh own.sh; sh fixture.sh; make test"
    _, calls = place.run(text)
    by_word = {call.argv[-1]: call for call in calls}
    assert [*by_word] == ["inline", "written", "fixture", "make"]
    inline, written, fixture, make = by_word.values()
    assert inline.asker and inline.asker.argv == ("bash", "-c", "bin/mt ok inline")
    assert all(call.parents[-1].argv == ("/bin/sh", "-c", text) for call in calls)
    assert written.asker and (written.asker.script, written.asker.written) == (place.inside("own.sh"), True)
    assert fixture.asker and (fixture.asker.script, fixture.asker.written) == (
        place.inside("fixture.sh"),
        False,
    )
    assert make.asker and make.asker.exe.endswith("make") and not make.asker.script


def test_a_script_for_an_interpreter_is_written_too(place: Place) -> None:
    script = "import subprocess, sys; subprocess.run(['bin/mt', 'ok', sys.argv[0]])\n"
    place.write("theirs.py", script)
    place.write("mine/../given.py", script)
    text = "cp theirs.py own.py; python3 own.py; python3 theirs.py; cp own.py $TMPDIR/t.py; python3 $TMPDIR/t.py; python3 -m own; python3 -m given"
    _, calls = place.run(text)
    askers = [
        next(each for each in (*filter(None, [call.asker]), *call.parents) if each.script) for call in calls
    ]
    assert [each.written for each in askers] == [True, False, True, True, False]
    assert [each.script.rsplit("/", 1)[-1] for each in askers] == [
        "own.py",
        "theirs.py",
        "t.py",
        "own.py",
        "given.py",
    ]


def test_marks_of_agent_programs(place: Place) -> None:
    _, calls = place.run(
        "export CODEX_TOOL_CALL_ID=call_1 SECRET=x; sh -c 'bin/mt ok a; env -i bin/mt ok b; :'; bin/mt ok c"
    )
    asked = [call.asker.marks for call in calls if call.asker]
    # A shell's own variables are those that it was started with.
    assert asked == [{"CODEX_TOOL_CALL_ID": "call_1"}, {"CODEX_TOOL_CALL_ID": "call_1"}, {}]
    assert calls[1].parents[-1].marks == {}


def test_many_ancestors_keep_the_topmost(place: Place) -> None:
    place.write("nest.sh", '[ "$1" = 0 ] && bin/mt ok deep || sh nest.sh $(($1 - 1)); :\n')
    _, (call,) = place.run("sh nest.sh 30; :")
    assert len(call.parents) == 16
    assert call.parents[-1].argv == ("/bin/sh", "-c", "sh nest.sh 30; :")
    assert call.parents[-2].argv[-1] == "30"


@pytest.mark.sampled(1)
def test_a_thread_that_rewrites_the_path_while_the_kernel_asks(place: Place) -> None:
    place.write("log.sh", "#!/bin/sh\necho x >> ran\n")
    place.write(
        "race.py",
        """
import ctypes, os, threading
libc = ctypes.CDLL(None)
for n in range(80):
    if pid := os.fork():
        os.waitpid(pid, 0)
        continue
    path, real, other = ctypes.create_string_buffer(b"./log.sh"), b"./log.sh", b"./noth.sh"
    argv = (ctypes.c_char_p * 2)(b"log.sh", None)
    def flip():
        while True:
            path.raw = other
            path.raw = real + b"\\0"
    threading.Thread(target=flip, daemon=True).start()
    libc.execve(path, argv, None)
    os._exit(1)
""",
    )
    place.write("noth.sh", "#!/bin/sh\n:\n")
    _, calls = place.run("python3 race.py", "log.sh")
    ran = (place.workspace / "ran").read_text().count("x")
    assert ran
    assert len(calls) == ran


def test_a_call_under_a_tracer_of_its_own(place: Place) -> None:
    if not shutil.which("strace"):
        missing("strace", "There is no strace.")
    result, calls = place.run("strace -o trace bin/mt sleep 0.3; echo $?")
    assert result.stdout == b"0\n"
    assert [call.argv[-1] for call in calls] == ["0.3"]
    assert calls[0].signal is None
    assert calls[0].exit in (0, None)


def test_long_command_lines_are_cut(within_bwrap: Place) -> None:
    _, calls = within_bwrap.run(f"bin/mt ok {'x' * 100_000}; : {'y' * 20_000}")
    assert 0 < len(calls[0].argv[-1]) < 70_000
    assert calls[0].asker and len("".join(calls[0].asker.argv)) <= 8_000


def test_nothing_is_recorded_without_a_request(place: Place) -> None:
    result, calls = place.run("true", "bin/mt")
    assert (result.exit_code, calls) == (0, ())

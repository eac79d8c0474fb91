from __future__ import annotations

import json

import pytest

from evaluators.model import Event, Transcript
from evaluators.tool_use.interaction import Interaction, analyse
from evaluators.tool_use.recorded_commands import (
    Caller,
    CallingProcess,
    RecordedCall,
    origin_of,
    read_call_record,
)
from evaluators.tool_use.tool import Tool

CLAUDE = CallingProcess(2, ("claude", "-p"), "/opt/node_modules/@anthropic-ai/claude-code/bin/claude")
CODEX = CallingProcess(2, ("codex", "exec"), "/opt/bin/codex")
AGENT_SCRIPT = CallingProcess(2, ("sh", "agent.sh"), "/usr/bin/dash", "/workspace/agent.sh")
TEMPLATE = CallingProcess(1, ("/bin/sh", "-c", "sh agent.sh 'Do it' | tee log"), "/usr/bin/dash")


def bash(line: str, pid: int = 9) -> CallingProcess:
    return CallingProcess(pid, ("/bin/bash", "-c", line), "/usr/bin/bash")


def program(*argv: str, script: str = "", written: bool = False, exe: str = "") -> CallingProcess:
    return CallingProcess(10, argv, exe or f"/usr/bin/{argv[0]}", script, written)


def call(*chain: CallingProcess, argv: tuple[str, ...] = ("mt", "add"), **fields: object) -> RecordedCall:
    given = {"n": 1, "how": "file", "path": "/usr/bin/mt", "argv": argv, "start": 0.0, "exit": 0, **fields}
    return RecordedCall(asker=chain[0], parents=chain[1:], **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        pytest.param((bash("mt add"), CODEX), "model", id="a shell of the agent"),
        pytest.param((CODEX,), "codex", id="the agent for itself"),
        pytest.param((program("env"), bash("env mt"), CODEX), "model", id="launcher"),
        pytest.param((program("xargs"), program("timeout"), bash("x"), CODEX), "model", id="launchers"),
        pytest.param((program("make", "test"), bash("make test"), CODEX), "make", id="make"),
        pytest.param((bash("mt add"), program("make"), bash("make"), CODEX), "make", id="a recipe of make"),
        pytest.param((program("python3", "-c", "x"), bash("x"), CODEX), "model", id="inline code"),
        pytest.param((program("python3", "own.py", script="/workspace/own.py", written=True), bash("x"), CODEX), "model", id="a script that the agent wrote"),
        pytest.param((program("python3", "given.py", script="/workspace/given.py"), bash("x"), CODEX), "given.py", id="a script of the fixture"),
        pytest.param((program("pytest", exe="/usr/bin/python3", script="/usr/bin/pytest"), bash("pytest"), CODEX), "pytest", id="a test runner"),
        pytest.param((bash("mt add"), program("node", "npx", script="/usr/bin/npx"), bash("npx mt add"), CODEX), "model", id="npx"),
        pytest.param((bash("mt add"), program("npm", "test"), bash("npm test"), CODEX), "npm", id="npm test"),
        pytest.param((bash("source x && eval 'mt add' < /dev/null && pwd"), CLAUDE), "model", id="a shell of Claude Code"),
        pytest.param((CallingProcess(9, ("/bin/sh", "-c", "mt add"), "/usr/bin/dash"), CLAUDE), "a hook", id="a hook"),
        pytest.param((CLAUDE,), "claude", id="Claude Code for itself"),
        pytest.param((AGENT_SCRIPT, TEMPLATE), "model", id="a script that is the agent"),
        pytest.param((bash("mt add"), AGENT_SCRIPT, TEMPLATE), "model", id="a shell of such a script"),
        pytest.param((program("make"), AGENT_SCRIPT, TEMPLATE), "make", id="make of such a script"),
        pytest.param((CODEX, AGENT_SCRIPT, TEMPLATE), "codex", id="an agent in a script"),
        pytest.param((bash("mt add"), CODEX, AGENT_SCRIPT, TEMPLATE), "model", id="a shell of an agent in a script"),
        pytest.param((CallingProcess(1, ("/bin/sh", "-c", "mt add"), "/usr/bin/dash"),), "model", id="the template alone"),
    ],
)  # fmt: skip
def test_a_call_has_an_origin(chain: tuple[CallingProcess, ...], expected: str) -> None:
    found = origin_of(call(*chain))
    assert (found.program or found.caller.value) == expected


def test_what_the_tool_starts_is_neither() -> None:
    assert origin_of(call(bash("mt add"), CODEX, within=1)).caller is Caller.TOOL


def analysed(record: list[RecordedCall], *events: Event, tool: Tool | None = None) -> Interaction:
    transcript = Transcript(events, "stream" if events else "none")
    return analyse(transcript, tool or Tool(binary="mt"), completed=True, record=record)


def test_the_record_is_the_best_source() -> None:
    line = "mt add x | cat; mt list"
    shell = bash(line)
    record = [
        call(shell, CODEX, argv=("mt", "add", "x"), exit=2, start=1.0, seconds=0.5),
        call(shell, CODEX, n=2, argv=("mt", "list"), start=2.0),
        call(program("make"), bash("make"), CODEX, n=3, start=3.0),
    ]
    events = (Event("tool_call", "1", "shell", line), Event("tool_result", "1", exit_code=0))
    found = analysed(record, *events)
    assert [(one.line, one.exit_code, one.end, one.event, one.seconds) for one in found.commands] == [
        ("mt add x", 2, "recorded", 0, 0.5),
        ("mt list", 0, "recorded", 0, None),
    ]
    assert (found.source, found.ends, found.error_rate) == ("recorded", "recorded", 0.5)
    assert (found.indirect, found.indirect_by) == (1, {"make": 1})


def test_without_any_call_events_do_not_stand_in() -> None:
    events = (Event("tool_call", "1", "shell", "mt add"), Event("tool_result", "1", exit_code=0))
    found = analysed([], *events)
    assert (found.total_commands, found.source) == (0, "recorded")


def test_what_runs_elsewhere_comes_from_the_events() -> None:
    events = (
        Event("tool_call", "1", "shell", "docker exec box mt add"),
        Event("tool_result", "1", exit_code=3),
    )
    found = analysed([], *events)
    assert [(one.line, one.exit_code, one.end) for one in found.commands] == [("mt add", 3, "reported")]


def test_a_signal_is_a_failure_and_a_cut_call_is_unknown() -> None:
    shell = bash("timeout 1 mt add; mt list")
    record = [
        call(shell, CODEX, exit=None, signal=15),
        call(shell, CODEX, n=2, start=1.0, argv=("mt", "list"), exit=None),
    ]
    found = analysed(record)
    assert [(one.exit_code, one.failed, one.end) for one in found.commands] == [
        (143, True, "recorded"),
        (None, False, "unknown"),
    ]


@pytest.mark.parametrize(
    ("how", "path", "argv", "tool", "expected"),
    [
        ("file", "/workspace/bin/mt", ("./bin/mt", "add"), Tool(binary="./bin/mt"), "mt add"),
        ("copy", "/tmp/c", ("/tmp/c", "add"), Tool(binary="mt"), "mt add"),
        ("argument", "/usr/bin/python3", ("python3", "mt", "add"), Tool(binary="mt"), "mt add"),
        ("argument", "/usr/bin/python3", ("python3", "mt.py", "add"), Tool(binary="python3 mt.py"), "python3 mt.py add"),
        ("module", "/usr/bin/python3", ("python3", "-m", "mt", "add"), Tool(binary="mt"), "mt add"),
        ("name", "/x/node_modules/.bin/mt", ("/x/node_modules/.bin/mt", "add"), Tool(command_pattern=r"mt (\w+)"), "mt add"),
    ],
)  # fmt: skip
def test_a_call_is_named_as_the_scenario_names_the_tool(
    how: str, path: str, argv: tuple[str, ...], tool: Tool, expected: str
) -> None:
    found = analysed([call(bash("x"), CODEX, how=how, path=path, argv=argv)], tool=tool)
    assert [(one.line, one.subcommand) for one in found.commands] == [(expected, "add")]


def test_a_pattern_leaves_out_what_it_does_not_match() -> None:
    tool = Tool(command_pattern=r"mt (add|list)")
    assert (
        analysed([call(bash("mt --version"), CODEX, argv=("mt", "--version"))], tool=tool).total_commands == 0
    )


def test_equal_commands_are_matched_in_order() -> None:
    events = tuple(
        each
        for n in range(3)
        for each in (Event("tool_call", str(n), "shell", "mt add"), Event("tool_result", str(n), exit_code=0))
    )
    record = [call(bash("mt add", pid=20 + n), CODEX, n=n + 1, start=float(n)) for n in range(3)]
    assert [one.event for one in analysed(record, *events).commands] == [0, 2, 4]


def test_a_record_is_read_in_the_order_of_starts() -> None:
    lines = [{"n": n, "how": "file", "path": "mt", "argv": ["mt"], "start": -float(n)} for n in (1, 2)]
    content = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    assert [one.n for one in read_call_record(content)] == [2, 1]


def test_broken_lines_of_a_record_are_left_out() -> None:
    line = b'{"n": %d, "how": "file", "path": "mt", "argv": ["mt", "%s"], "start": 1.0}\n'
    broken = (b"\xff", b"\\udcff", b'"')
    content = b"".join(line % (n, each) for n, each in enumerate((b"ok", *broken, b"last"), start=1))
    assert [one.n for one in read_call_record(b'{"n": 0\n' + content + b'{"n": 9, "how"')] == [1, 5]

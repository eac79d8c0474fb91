"""What recording the tool costs: a call of it, any other execution, and the start of an agent."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.recording.record import RecordedTool, ToolRecord
from tests.bench.figures import Figure
from tests.runs.containments import containment

CALLS, ROUNDS = 500, 5
_TOOL = "#!/bin/sh\nexit 0\n"
_LOOP = "n=0; while [ $n -lt {calls} ]; do {program}; n=$((n + 1)); done"


def recording() -> Iterator[Figure]:
    """Milliseconds that recording adds, with and without it in turn; 500 executions in a shell's loop."""
    started = _added("true")
    yield Figure("recording: start of an agent", median(started), "ms", 30.0)
    for name, program, target in (
        ("a call of the tool", "./mt", 1.0),
        ("another execution", "/bin/true", 0.5),
    ):
        added = _added(_LOOP.format(calls=CALLS, program=program))
        yield Figure(f"recording: {name}", (median(added) - median(started)) / CALLS, "ms", target)


def _added(command: str) -> list[float]:
    return [
        1000 * (_seconds(command, recorded=True) - _seconds(command, recorded=False)) for _ in range(ROUNDS)
    ]


def _seconds(command: str, *, recorded: bool) -> float:
    with tempfile.TemporaryDirectory() as workspace, tempfile.TemporaryDirectory() as scratch:
        tool = Path(workspace, "mt")
        tool.write_text(_TOOL)
        tool.chmod(0o755)
        sandbox = containment().around(Path(workspace), Path(scratch), profile=AGENT)
        inside = sandbox.inside(Path(workspace))
        record = (
            ToolRecord(RecordedTool("mt", (f"{inside}/mt",)), Path(workspace), inside, ())
            if recorded
            else None
        )
        began = time.perf_counter()
        run_process(
            command,
            cwd=Path(workspace),
            env={},
            timeout_seconds=60,
            limits=sandbox.limits,
            sandbox=sandbox,
            record=record,
        )
        return time.perf_counter() - began

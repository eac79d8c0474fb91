"""Transcripts: from bytes to metrics, of logs like those of long sessions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from statistics import median

from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import PARSERS
from tests.bench.figures import Figure

MEGABYTES = 100
TIMES = 5
EVENT_BYTES = 359
"""Size of an event in logs of real agents."""
TOOL = Tool(binary="taskmgr")
SUBCOMMANDS = ("create", "list", "link", "show", "complete", "export", "report", "import")


def _event(n: int) -> bytes:
    """Return one event: a third are calls, a third their results, a third messages."""
    kind = n % 3
    if kind == 0:
        command = f"taskmgr {SUBCOMMANDS[n // 3 % 8]} --title 'task {n // 3 % 500}'"
        event = {"event": "tool_call", "id": f"c{n}", "tool": "bash", "command": command}
    elif kind == 1:
        event = {"event": "tool_result", "id": f"c{n - 1}", "exit_code": int(n % 30 == 1), "output": ""}
    else:
        event = {"event": "message", "role": "assistant", "text": ""}
    padding = EVENT_BYTES - len(json.dumps(event)) - 1
    event["output" if kind == 1 else "text"] = "x" * max(padding, 0)
    return json.dumps(event).encode() + b"\n"


def events_log() -> bytes:
    """Return 100 MB of structured events."""
    block = b"".join(_event(n) for n in range(30_000))
    return block * (MEGABYTES * 1_000_000 // len(block))


def text_log() -> bytes:
    """Return 100 MB of plain output, 8 % of its lines commands."""
    lines = []
    for n in range(30_000):
        if n % 25 in (0, 12):
            lines.append(f"$ taskmgr {SUBCOMMANDS[n % 8]} --title 'task {n % 500}'")
        else:
            lines.append(f"some output of the tool, line {n}, of a length that such lines have")
    block = ("\n".join(lines) + "\n").encode()
    return block * (MEGABYTES * 1_000_000 // len(block))


def speed() -> Iterator[Figure]:
    """Megabytes a second of one core, from bytes to metrics."""
    for name, parser, log, target in (
        ("events", "events", events_log(), 150.0),
        ("text, 8 % commands", "plain_text", text_log(), 50.0),
    ):
        # One after the other, for the processor is not as quick in every second.
        seconds, bare = zip(*((_seconds(parser, log), _bare(log)) for _ in range(TIMES)), strict=True)
        yield Figure(
            f"100 MB of {name} to metrics",
            len(log) / 1e6 / median(seconds),
            "MB/s",
            target,
            median(bare),
            more=True,
        )


def _seconds(parser: str, log: bytes) -> float:
    began = time.process_time()
    analyse(PARSERS[parser](log), TOOL, completed=True)
    return time.process_time() - began


def _bare(log: bytes) -> float:
    """Return the speed of a loop that splits the log into lines and looks for one word in each."""
    began = time.process_time()
    sum(b"taskmgr" in line for line in log.split(b"\n"))
    return len(log) / 1e6 / (time.process_time() - began)

"""Run a shell script as an agent does, in a sandbox, with its tool recorded."""

from __future__ import annotations

from pathlib import Path

from evaluators.tool_use.recorded_commands import RecordedCall, read_call_record
from runs.sandbox.process import ProcessResult, run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.recording.record import RecordedTool, ToolRecord
from runs.sandbox.sandbox import Containment
from tests.layer1.own_log import install
from tests.runs.containments import containment

LOG = "log.jsonl"


def run_recorded(
    command: str,
    folders: tuple[Path, Path],
    *,
    seconds: float = 60,
    within: Containment | None = None,
    tool: str = "mt",
) -> tuple[ProcessResult, tuple[RecordedCall, ...]]:
    """Run a command in a sandbox around a workspace with the tool that keeps a log of its own; return its record."""
    workspace, scratch = folders
    sandbox = (within or containment()).around(workspace, scratch, profile=AGENT)
    inside = sandbox.inside(workspace)
    if not (workspace / tool).exists():
        install(workspace, Path(inside) / LOG, tool)
    writable = (inside, sandbox.inside(scratch), "/tmp", "/home/agent")
    record = ToolRecord(RecordedTool(tool, (f"{inside}/{tool}",)), workspace, inside, writable)
    ended = run_process(
        command,
        cwd=workspace,
        env=sandbox.own_home(),
        timeout_seconds=seconds,
        limits=sandbox.limits,
        sandbox=sandbox,
        record=record,
    )
    assert record.content is not None
    return ended, read_call_record(record.content)

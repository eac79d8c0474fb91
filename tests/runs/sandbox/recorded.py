"""Run commands in a sandbox with their calls of a tool recorded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.tool_use.recorded_commands import RecordedCall, read_call_record
from runs.sandbox.process import ProcessResult, run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.recording.record import RecordedTool, ToolRecord, list_program_places
from runs.sandbox.sandbox import HOME, Level
from tests.runs.containments import containment

TOOL = """#!/bin/sh
case "$1" in
  fail) echo "mt: error: no" >&2; exit "$2";;
  sleep) sleep "$2";;
  again) "$0" ok inner;;
  die) kill -"$2" $$;;
  cat) cat;;
esac
"""


@dataclass
class Place:
    """A workspace with the tool `bin/mt` and the sandbox around it."""

    folder: Path
    level: Level

    def __post_init__(self) -> None:
        self.workspace, self.scratch = self.folder / "workspace", self.folder / "scratch"
        for each in (self.workspace, self.scratch):
            each.mkdir()
        self.write("bin/mt", TOOL)

    def write(self, name: str, text: str) -> None:
        """Write an executable file into the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run(
        self, command: str | list[str], tool: str = "bin/mt", *, is_module: bool = False, **changes: Any
    ) -> tuple[ProcessResult, tuple[RecordedCall, ...]]:
        """Run a command and return how it ended, with the recorded calls."""
        sandbox = containment(self.level).around(self.workspace, self.scratch, profile=AGENT)
        options = {"timeout_seconds": 60.0, "limits": sandbox.limits, **changes}
        inside = sandbox.inside(self.workspace)
        name, path = tool.rsplit("/", 1)[-1], os.environ["PATH"]
        by_name = "/" not in tool and not tool.endswith((".py", ".js"))
        places = (
            ()
            if is_module
            else list_program_places(f"./{tool}" if "." in tool and "/" not in tool else tool, inside, path)
        )
        writable = (inside, sandbox.inside(self.scratch), "/tmp", HOME)
        record = ToolRecord(RecordedTool(name, places, by_name), self.workspace, inside, writable)
        result = run_process(command, cwd=self.workspace, env={}, sandbox=sandbox, record=record, **options)
        assert record.content is not None
        return result, read_call_record(record.content)

    def inside(self, name: str) -> str:
        """Return the path of a file of the workspace in the sandbox."""
        return f"/workspace/{name}" if self.level is Level.BWRAP else str(self.workspace.resolve() / name)


def ends(calls: tuple[RecordedCall, ...]) -> list[tuple[str, int | None, int | None]]:
    """Return the last argument of each call with its exit code and signal."""
    return [(call.argv[-1], call.exit, call.signal) for call in calls]

"""How Claude Code's background commands ended: told by the stream, by a notification, or by a later read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct, structs

from evaluators.model import Event, Json
from evaluators.transcripts.stream import Object, mapping_or_empty, text_or_none

_STARTED = re.compile(
    r"Command running in background with ID: (?P<a>[\w-]+)"
    r"|Command was manually backgrounded by user with ID: (?P<b>[\w-]+)"
    r"|Command [^\n]{0,200}?moved to the background \(ID: (?P<c>[\w-]+)\)"
)
TASK_READS = frozenset(("BashOutput", "TaskOutput", "AgentOutputTool", "BashOutputTool"))
"""Calls that read what a background command printed and how it ended."""
_CODE = re.compile(r"(?:\(exit code|with exit code) (-?\d{1,5})\b")
_READ_STATUS = re.compile(r"<status>(\w+)</status>")
_READ_CODE = re.compile(r"<exit_code>(-?\d{1,5})</exit_code>")
_READ_OUTPUT = re.compile(r"<(?:output|stdout)>\n?([\s\S]*?)\n?</(?:output|stdout)>")
_NOTICE = re.compile(r"<task-notification>([\s\S]*?)</task-notification>")
_TASK = re.compile(r"<task-id>([^<]*)</task-id>")
_SUMMARY = re.compile(r"<summary>([\s\S]*?)</summary>")


class TaskEnd(Struct, frozen=True):
    """The end of a background command."""

    exit_code: int | None = None
    success: bool | None = None
    """None for one that was stopped: it neither succeeded nor failed."""
    output: str = ""


class TaskEnds:
    """Collects the ends of background commands by their id."""

    def __init__(self) -> None:
        self.found: dict[str, TaskEnd] = {}

    def add_status(self, line: Object) -> None:
        """Take a system line of the live stream."""
        task = text_or_none(line.get("task_id"))
        if task is None:
            return
        if line.get("subtype") == "task_notification":
            self._add(task, text_or_none(line.get("status")), text_or_none(line.get("summary")) or "")
        elif line.get("subtype") == "task_updated":
            patch = mapping_or_empty(line.get("patch"))
            self._add(task, text_or_none(patch.get("status")), text_or_none(patch.get("error")) or "")

    def add_notices(self, text: str) -> None:
        """Take the notifications in a message that Claude Code writes for the model."""
        if "<task-notification>" not in text:
            return
        for notice in _NOTICE.findall(text):
            task, status, summary = (pattern.search(notice) for pattern in (_TASK, _READ_STATUS, _SUMMARY))
            if task and status:
                self._add(task[1].strip(), status[1], summary[1] if summary else "")

    def add_read(self, task: str, output: str) -> None:
        """Take what a tool returned that reads a background command's output."""
        before, _, _ = output.partition("<output>")
        status, code = _READ_STATUS.search(before), _READ_CODE.search(before)
        printed = _READ_OUTPUT.search(output)
        if status:
            said = f"(exit code {code[1]})" if code else ""
            self._add(task, status[1], said, printed[1] if printed else "")

    def _add(self, task: str, status: str | None, said: str, output: str = "") -> None:
        before = self.found.get(task, TaskEnd())
        code = _CODE.search(said)
        known = int(code[1]) if code else before.exit_code
        output = output or before.output
        if status in ("completed", "failed"):
            success = known == 0 if known is not None else status == "completed"
            self.found[task] = TaskEnd(known, success, output)
        elif status in ("killed", "stopped"):
            self.found[task] = TaskEnd(output=output)


def task_of(output: Json) -> str:
    """Return the id of a command that a result says is in the background; empty if it is not."""
    match = _STARTED.match(output.lstrip()) if isinstance(output, str) else None
    return next(filter(None, match.groups()), "") if match else ""


def with_task_ends(events: Iterable[Event], ends: TaskEnds) -> list[Event]:
    """Return the events, with the results of background commands as they ended; unknown if nothing tells."""
    events = list(events)
    reads: dict[str, str] = {}
    for event in events:
        if event.type == "tool_call" and event.id and event.name in TASK_READS:
            arguments = mapping_or_empty(event.input)
            task = next(
                (
                    text_or_none(arguments.get(key))
                    for key in ("task_id", "bash_id", "shell_id")
                    if key in arguments
                ),
                "",
            )
            reads[event.id] = task or ""
        elif event.type == "tool_result" and isinstance(event.output, str) and reads.get(event.id or ""):
            ends.add_read(reads[event.id or ""], event.output)
        elif event.type == "message" and event.role in ("user", "agent") and event.text:
            ends.add_notices(event.text)
    return [_end_event(event, ends) for event in events]


def _end_event(event: Event, ends: TaskEnds) -> Event:
    if event.type != "tool_result" or event.success is not True or not (task := task_of(event.output)):
        return event
    end = ends.found.get(task, TaskEnd())
    output = f"{event.output}\n{end.output}" if end.output else event.output
    return structs.replace(event, exit_code=end.exit_code, success=end.success, output=output)

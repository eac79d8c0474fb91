"""Decide whether a session was broken by its model's service or a crash, and notice its closing event."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from evalhub.lib.limits import LONGEST_ERROR
from evaluators.model import Transcript
from evaluators.transcripts.endings import SessionEnd, ending_of
from evaluators.transcripts.sessions.sub_agents import read_own_account
from evaluators.transcripts.stream import json_or_none, mapping_or_empty
from runs.sandbox.recording.record import ToolRecord
from runs.targets.providers.base import ENDED_BY_SIGNAL, Recording
from runs.targets.providers.recent_lines import SplitLines
from runs.targets.providers.retry import RequestFailure, advise_on_failure, describe_failure


@dataclass(frozen=True)
class Broken:
    """Why a trial is an error, whatever its gates say: a kind (`endpoint`, `crash`) and a sentence."""

    kind: str
    sentence: str


def broken_by(recording: Recording) -> Broken | None:
    """Return what broke a session; None if it ended by itself, by a limit or by what the agent did.

    Gates have no part in it, because an error that depends on the outcome bends the pass rate.
    """
    if recording.was_stopped and not recording.timed_out:
        return None
    ending = ending_of(recording.parser, recording.raw)
    if failure := _service_failure(recording, ending):
        session = recording.program or "The session"
        names_status = failure.status is None or str(failure.status) in failure.message
        said = failure.message if names_status else describe_failure(failure)
        sentence = (
            f"{session} was cut off by its model's service: {said.rstrip('.')}. {advise_on_failure(failure)}"
        )
        return Broken("endpoint", sentence)
    return None if recording.was_stopped or not recording.program else _crash(recording, ending)


def _service_failure(recording: Recording, ending: SessionEnd | None) -> RequestFailure | None:
    if ending is not None and ending.failure:
        return RequestFailure(ending.failure[:LONGEST_ERROR], ending.status)
    repeated = recording.service_failure
    if repeated.said and not (ending and ending.answered):
        return RequestFailure(repeated.said[:LONGEST_ERROR], repeated.status)
    return None


def _crash(recording: Recording, ending: SessionEnd | None) -> Broken | None:
    signal = ENDED_BY_SIGNAL.get(recording.exit_code) if recording.exit_code is not None else None
    if signal is not None:
        sentence = f"{recording.program} crashed: {signal.name} ended it, which evalhub didn't send."
    elif ending is not None and not ending.closed and account_of(recording) is None:
        sentence = f"{recording.program} crashed: its stream has no closing event."
    else:
        return None
    printed = recording.stderr.strip()[-LONGEST_ERROR:].rstrip(".")
    printed = f" Standard error: {printed}." if printed else ""
    return Broken("crash", f"{sentence}{printed} Run it by hand to see why.")


def account_of(recording: Recording) -> Transcript | None:
    """Return a session by the agent's own file, where its program ended by itself with 0 and its stream lost the end."""
    if recording.exit_code != 0 or recording.was_cut or recording.was_stopped:
        return None
    return read_own_account(recording.parser, recording.raw, recording.logs)


def has_answered(recording: Recording) -> bool:
    """Return whether the agent's stream has its final result."""
    ending = ending_of(recording.parser, recording.raw)
    return ending is not None and ending.answered


def has_closed(recording: Recording) -> bool:
    """Return whether the agent's stream has its closing event."""
    ending = ending_of(recording.parser, recording.raw)
    return ending is not None and ending.closed


LINGER_SECONDS = 10.0
"""Seconds after the closing event in which a program may end by itself."""
_KIND = re.compile(rb'\s*\{\s*"type"\s*:\s*"([\w.]{1,40})"')
_CLOSING: Mapping[str, tuple[bytes, ...]] = {
    "claude_code": (b"result",),
    "codex": (b"turn.completed", b"turn.failed"),
    "gemini_cli": (b"result",),
    "qwen_code": (b"result",),
    "copilot_cli": (b"result",),
    "opencode": (b"step_finish",),
}
_GOES_ON = re.compile(rb'"reason"\s*:\s*"tool-calls"')
"""What the end of a step of opencode says that isn't its last."""
_RESULTS = re.compile(rb"user|tool_result|tool_use|tool\.execution_complete|item\.completed")
"""Kinds of lines that may have the result of a call; a message of the model in one of them comes after all results."""
_TURNS = re.compile(
    rb"assistant|user|message|text|tool_use|tool_result|step_start|turn\.started|item\.\w+"
    rb"|assistant\.(?:message|turn_start)|tool\.execution_\w+"
)
"""Kinds of lines that continue a session: Claude Code wakes up for what its background commands did."""
_TASK = re.compile(rb"task_(?:started|notification|updated)")


class ClosingEvent:
    """Reads a stream's lines as they come, and tells the tool's record when the agent was done with its calls."""

    def __init__(
        self, parser: str, record: ToolRecord | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._closing = _CLOSING.get(parser, ())
        self._record = record
        self._clock = clock
        self._split = SplitLines()
        self._closed_at = self._result_at = float("inf")
        self._agents: set[str] = set()
        """Sub-agents in the background, which go on after the closing event."""

    def take(self, stream: Literal["stdout", "stderr"], chunk: bytes) -> None:
        """Take the next bytes."""
        if stream == "stdout" and self._closing:
            for line in self._split.take(chunk):
                self._read(line)

    def lingers(self) -> bool:
        """Return whether nothing but processes in the background has kept the program for `LINGER_SECONDS`."""
        return not self._agents and self._clock() - self._closed_at >= LINGER_SECONDS

    def _read(self, line: bytes) -> None:
        kind = _kind(line)
        if kind in self._closing and not (kind == b"step_finish" and _GOES_ON.search(line)):
            self._closed_at = self._clock()
            self._tell(self._closed_at, self._result_at)
        elif _TURNS.fullmatch(kind):
            self._closed_at = float("inf")
            self._tell(self._closed_at, self._closed_at)
            if _RESULTS.fullmatch(kind) and b"agent_message" not in line[:200]:
                self._result_at = self._clock()
        elif kind == b"system" and _TASK.search(line[:200]):
            self._note_task(line)

    def _note_task(self, line: bytes) -> None:
        event = mapping_or_empty(json_or_none(line))
        about = {**event, **mapping_or_empty(event.get("data")), **mapping_or_empty(event.get("patch"))}
        task = str(about.get("task_id"))
        if event.get("subtype") == "task_started":
            is_agent = "agent" in str(about.get("task_type", about.get("subagent_type", "")))
            self._agents |= {task} if is_agent or "subagent_type" in about else set()
        elif about.get("status") in ("completed", "failed", "killed", "stopped"):
            self._agents.discard(task)

    def _tell(self, closed_at: float, result_at: float) -> None:
        if self._record is not None:
            self._record.closed_at, self._record.result_at = closed_at, result_at


def _kind(line: bytes) -> bytes:
    """Return the type of a line's event: mostly its first key, which needs no decoding of a large line."""
    if match := _KIND.match(line):
        return match[1]
    return str(mapping_or_empty(json_or_none(line)).get("type", "")).encode()

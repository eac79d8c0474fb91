"""Turn a transcript and the tool's commands into steps: calls and messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.utils.safestring import SafeString

from evaluators.json_values import indent_json
from evaluators.model import Event, Transcript
from evaluators.tool_use.attempts import stated_message
from evaluators.tool_use.calls import Call, epoch_seconds, pair_calls
from evaluators.tool_use.mcp_calls import McpFailure
from runs.models import CommandRecord

LONGEST_INDENTED = 50_000
"""Characters of a value with indentation; a longer one is shown on one line."""


class DrawnPause(NamedTuple):
    """The model's turn before a call."""

    seconds: float
    bar: SafeString


class StepPicture(NamedTuple):
    """What the waterfall shows of a step."""

    bar: SafeString | None
    """None if its time was not recorded although those of others were."""
    pause: DrawnPause | None = None
    seconds: float | None = None
    """How long a message was awaited; None for a call."""


@dataclass(frozen=True)
class TimelineStep:
    """One line of the timeline: a call or a message."""

    number: int
    """Number of the call; 0 for a message."""
    line: str = ""
    text: str = ""
    """The message; empty for a call."""
    speaker: str = ""
    output: str = ""
    exit_code: int | None = None
    failed: bool = False
    failure: str = ""
    """Why a call of an MCP server failed, in words; empty for other tools."""
    seconds: float | None = None
    ours: bool = True
    """Whether it calls the tool under test."""
    retry: int = 0
    """Number of the retry within its attempts; 0 for the first try."""
    root: int | None = None
    """Index of the tool's command that the attempts began with; None for other steps."""
    typed: str = ""
    """The whole command line that the agent ran; `line` may show only the tool's command in it."""
    command: CommandRecord | None = None
    """The tool's command that it shows; None for other steps."""
    own: tuple[CommandRecord, ...] = ()
    """The tool's commands in it."""
    without_event: bool = False
    """Whether it was recorded and no event of the agent shows it."""
    in_text: bool = False
    """Whether it was found in plain text, which holds its output too."""
    began: float | None = None
    """When a call began or a message was complete, in seconds since 1970; None if that was not recorded."""
    ended: float | None = None
    """When a call ended; None if that was not recorded."""
    picture: StepPicture | None = None
    """Its bars in the waterfall; None for steps that the page doesn't show."""

    @property
    def state(self) -> str:
        if self.failed:
            return "is-failed"
        return "" if self.exit_code is None else "is-passed"

    @property
    def why(self) -> str:
        """Return the first line that a failed call printed; empty for others."""
        return next((line for line in self.output.splitlines() if line.strip()), "") if self.failed else ""

    @property
    def help(self) -> bool:
        """Whether the tool's command only asks for help."""
        return self.command is not None and self.command.help

    @property
    def subcommand(self) -> str:
        """That of the tool's command; empty for other steps."""
        return self.command.subcommand if self.command else ""

    @property
    def estimated(self) -> bool:
        """Whether its end is estimated from text."""
        return self.command is not None and self.command.end == "estimated"

    @property
    def first_try(self) -> bool:
        return self.ours and not self.retry and not self.help


def steps_of(transcript: Transcript | None, commands: Sequence[CommandRecord]) -> Iterator[TimelineStep]:
    """Yield a trial's steps in order, from the transcript's events and the tool's commands."""
    attempts = _attempts(commands)
    paired = {call.index: call for call in pair_calls(transcript.events)} if transcript else {}
    if not paired:
        is_text = transcript is not None and bool(transcript.text)
        for number, command in enumerate(commands, 1):
            yield replace(_command_step(number, command, attempts[command.n], None), in_text=is_text)
        return
    by_event: dict[int, list[CommandRecord]] = {}
    for command in commands:
        by_event.setdefault(command.event if command.event is not None else -1, []).append(command)
    number = 0
    for index, event in find_steps(transcript.events if transcript else (), paired):
        if index in paired:
            number += 1
            yield _call_step(number, paired[index], by_event.get(index, []), attempts)
        else:
            yield TimelineStep(
                0,
                text=event.text or readable_text(event.output),
                speaker=event.role or event.type,
                began=epoch_seconds(event.timestamp),
            )
    for command in by_event.get(-1, []):
        number += 1
        yield replace(_command_step(number, command, attempts[command.n], None), without_event=True)


def find_steps(events: Sequence[Event], paired: Mapping[int, Call]) -> Iterator[tuple[int, Event]]:
    """Yield the events that are steps (calls and messages) with their index."""
    for index, event in enumerate(events):
        if index in paired or (event.type in ("message", "error") and (event.text or event.output)):
            yield index, event


def _attempts(commands: Sequence[CommandRecord]) -> dict[int, tuple[int, int]]:
    """Return for each command the number of its first attempt and of its retry."""
    attempts: dict[int, tuple[int, int]] = {}
    for command in commands:
        root, retry = (
            attempts.get(command.retry_of, (command.n, -1))
            if command.retry_of is not None
            else (command.n, -1)
        )
        attempts[command.n] = (root, retry + 1)
    return attempts


def _command_step(
    number: int, command: CommandRecord, attempt: tuple[int, int], call: Call | None
) -> TimelineStep:
    root, retry = attempt
    began, seconds = call.times() if call else (None, None)
    return TimelineStep(
        number,
        line=command.line,
        output="\n".join(filter(None, (stated_message(call) if call else "", _output(call)))),
        exit_code=command.exit_code,
        failed=command.failed,
        failure=McpFailure(command.failure).label if command.failure else "",
        seconds=seconds if command.seconds is None else command.seconds,
        retry=retry,
        root=root,
        typed=(call.event.command if call else None) or "",
        command=command,
        own=(command,),
        began=began,
        ended=_end(began, seconds),
    )


def _call_step(
    number: int, call: Call, commands: list[CommandRecord], attempts: dict[int, tuple[int, int]]
) -> TimelineStep:
    """Return a call's step; with several of the tool's commands in one line, a failed one represents it."""
    if commands:
        command = next((each for each in commands if each.failed), commands[-1])
        step = _command_step(number, command, attempts[command.n], call)
        return step if len(commands) == 1 else replace(step, line=_line(call.event), own=tuple(commands))
    code = call.exit_code
    began, seconds = call.times()
    return TimelineStep(
        number,
        line=_line(call.event),
        output=_output(call),
        exit_code=code,
        failed=bool(code),
        seconds=seconds,
        ours=False,
        began=began,
        ended=_end(began, seconds),
    )


def _end(began: float | None, seconds: float | None) -> float | None:
    return None if began is None or seconds is None else began + seconds


def _line(event: Event) -> str:
    if event.command:
        return event.command
    return f"{event.name or 'call'} {readable_text(event.input)}".strip()


def _output(call: Call | None) -> str:
    for event in (call.result, call.event) if call else ():
        if event is not None and (event.output is not None or (event.text and event.type != "tool_call")):
            return readable_text(event.output) if event.output is not None else str(event.text)
    return ""


def readable_text(value: Any) -> str:
    """Return a JSON value as readable text: strings unchanged, a command's streams concatenated."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and {"stdout", "stderr"} & value.keys():
        return "\n".join(str(value[name]) for name in ("stdout", "stderr") if value.get(name))
    if isinstance(value, dict) and isinstance(content := value.get("content"), list):
        # The result of an MCP server's tool.
        texts = [
            part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"
        ]
        if texts and len(texts) == len(content):
            return "\n".join(map(str, texts))
    return indent_json(value, most=LONGEST_INDENTED)

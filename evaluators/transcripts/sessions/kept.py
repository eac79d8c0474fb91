"""Reduce a session to what is stored of it, without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from evalhub.lib.limits import LONGEST_TEXT
from evaluators.model import Command, Event, Json, Score, Transcript
from evaluators.redaction import redact_json, redact_patterns
from evaluators.tool_use.attempts import error_message
from evaluators.tool_use.calls import Call, calls
from evaluators.tool_use.flag_confusion import TOOL, Confusion
from evaluators.tool_use.help_pages import HelpPage, parse_help
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.tool_use.waste import waste_scores
from evaluators.transcripts.nesting import without_deep_values
from evaluators.transcripts.sessions.session import Session, Trail
from evaluators.transcripts.sessions.written_once import call_key

_EXIT_CODE_LINE = re.compile(r"\A(?:Error: )?Exit code \d+\s*")


class KeptSession(Struct, frozen=True, omit_defaults=True):
    """What is stored of a session: the tool's commands, their exit codes, first error lines and times."""

    id: str
    sha256: str
    """The hash of its file's content."""
    agent: str
    file: str
    """The file's name without its folders."""
    commands: tuple[Command, ...]
    transcript: Transcript
    """A call and a result for each command; the whole redacted transcript on request."""
    wasted: tuple[Score, ...] = ()
    """Wasted tokens, if the agent tells the tokens of each turn."""
    flags: tuple[Confusion, ...] = ()
    """What its failed calls confused; needs the help of all sessions."""
    model: str = ""
    started: str = ""
    finished: str = ""
    is_whole: bool = False
    """Whether the transcript is the whole one."""
    not_run: int = 0
    """Calls of the tool that never ran."""
    mentioned: int = 0
    """Shell calls that name the tool and have no command of it."""
    unread: int = 0
    """Shell calls that may have commands of the tool and were not read in time."""
    root: str = ""
    """What sessions with the same beginning share."""
    copies: tuple[str, ...] = ()
    """What is the same in a copy of each of its commands, as hashes; kept where another session may have them."""
    messages: tuple[str, ...] = ()
    """Hashes of the ids of the messages whose tokens count here; known where another session may have them."""

    @property
    def failed(self) -> int:
        """The number of failed commands."""
        return sum(command.failed for command in self.commands)

    @property
    def errors(self) -> dict[int, str]:
        """The first error line of each command that failed or printed an error, by its number."""
        by_event = {call.index: call for call in calls(self.transcript.events)}
        paired = (
            (command, by_event.get(command.event))
            for command in self.commands
            if (command.failed or command.printed_error) and command.event is not None
        )
        return {command.n: _error_line(call) for command, call in paired if call}


class ReadSession(Struct, frozen=True):
    """A kept session, and the tool's help pages that the agent read in it."""

    kept: KeptSession
    help: dict[str, HelpPage]
    trail: Trail = Trail()
    """The session's, with its calls by command."""


def keep_session(
    session: Session, tool: Tool, *, agent: str, sha256: str, file: str, whole: bool = False
) -> ReadSession:
    """Return what is stored of a session; with `whole`, its transcript, redacted by pattern."""
    read = without_deep_values(session.transcript)
    metrics = analyse(read, tool, completed=False)
    by_index = {call.index: call for call in calls(read.events)}
    help = dict(_help_pages(metrics.commands, by_index))
    if whole:
        commands = tuple(_redact_command(command, command.event) for command in metrics.commands)
        transcript = _redacted_transcript(read)
    else:
        commands = tuple(_redact_command(command, 2 * n) for n, command in enumerate(metrics.commands))
        events = [event for command in commands for event in _events(command, by_index, metrics.commands)]
        transcript = Transcript(events=tuple(events), source="events", **_cost_facts(read))
    keys = {index: call_key(call.event) for index, call in by_index.items()}
    own = session.trail.calls or {index: (key,) for index, key in keys.items()}
    calls_of = {command.n: own.get(command.event or 0, ()) for command in metrics.commands}
    stored = KeptSession(
        id=redact_patterns(session.id or sha256),
        sha256=sha256,
        agent=agent,
        file=redact_patterns(file),
        commands=commands,
        wasted=waste_scores(read, metrics.commands, passed=False),
        transcript=transcript,
        model=redact_patterns(session.model),
        started=session.started,
        finished=session.finished,
        is_whole=whole,
        not_run=metrics.not_run,
        mentioned=metrics.mentioned,
        unread=metrics.unread,
        root=redact_patterns(session.trail.root),
        copies=tuple(dict.fromkeys(each[0] for each in calls_of.values() if each))
        if session.trail.calls
        else (),
    )
    all_calls = frozenset(int(key, 16) for key in keys.values())
    return ReadSession(stored, help, structs.replace(session.trail, calls=calls_of, all_calls=all_calls))


def _redact_command(command: Command, event: int | None) -> Command:
    sub, helps = (text and redact_patterns(text) for text in (command.subcommand, command.helps))
    line = redact_patterns(command.line)
    return structs.replace(command, line=line, subcommand=sub, helps=helps, event=event)


def _events(command: Command, by_index: Mapping[int, Call], originals: Sequence[Command]) -> Iterator[Event]:
    call = by_index.get(index) if (index := originals[command.n].event) is not None else None
    began = call.event.timestamp if call else None
    ended = call.result.timestamp if call and call.result else None
    id = str(command.n)
    yield Event("tool_call", id, "shell", command.line, timestamp=began)
    has_error = command.failed or command.printed_error
    output = redact_patterns(_error_line(call)) if call and has_error else None
    yield Event("tool_result", id, output=output, exit_code=command.exit_code, timestamp=ended)


def _error_line(call: Call) -> str:
    result = call.result
    output: Json = (result.output if result.output is not None else result.text) if result else None
    return error_message(_EXIT_CODE_LINE.sub("", output) if isinstance(output, str) else output)


def _help_pages(commands: Sequence[Command], by_index: Mapping[int, Call]) -> Iterator[tuple[str, HelpPage]]:
    """Yield the help that calls printed; a call with several of the tool's commands says not whose it is."""
    places = [each.event for each in commands]
    for command in commands:
        call = by_index.get(command.event) if command.event is not None else None
        if not command.help or command.failed or call is None or places.count(command.event) > 1:
            continue
        output = call.result.output if call.result else None
        if isinstance(output, str) and (page := parse_help(output[:LONGEST_TEXT])).options:
            yield command.helps or TOOL, page


def _redacted_transcript(transcript: Transcript) -> Transcript:
    events = tuple(_redacted_event(event) for event in transcript.events)
    return Transcript(
        events=events,
        source=transcript.source,
        text=redact_patterns(transcript.text),
        answer=redact_patterns(transcript.answer),
        **_cost_facts(transcript),
        unknown_events=transcript.unknown_events,
    )


def _cost_facts(transcript: Transcript) -> dict[str, Any]:
    """Return what a session's cost can be computed from, now or later."""
    names = ("usage", "usage_by_model", "cost_usd")
    return {name: getattr(transcript, name) for name in names}


def _redacted_event(event: Event) -> Event:
    command, text = (value and redact_patterns(value) for value in (event.command, event.text))
    metadata = redact_json(event.metadata)
    return structs.replace(
        event,
        command=command,
        text=text,
        input=redact_json(event.input),
        output=redact_json(event.output),
        metadata=metadata if isinstance(metadata, dict) else {},
    )

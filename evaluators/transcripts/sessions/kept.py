"""Reduce sessions to what is stored: without secrets, and without what another session's file has already.

A session that was continued or forked repeats the calls of the earlier one; these count once. Parts of one
session in several files, such as one that went on in another folder, are joined by their calls' ids.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from evalhub.lib.limits import LONGEST_TEXT
from evaluators.model import Command, Event, FoundCommand, Json, Score, Transcript, Usage, total_usage
from evaluators.redaction import redact_json, redact_patterns
from evaluators.tool_use.attempts import error_message
from evaluators.tool_use.calls import Call, pair_calls
from evaluators.tool_use.diagnosis import waste_scores
from evaluators.tool_use.flag_confusion import TOOL, Confusion, HelpPage, parse_help
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.tool_use.tool_commands import number_commands
from evaluators.transcripts.claude_code import by_model
from evaluators.transcripts.nesting import without_deep_values
from evaluators.transcripts.sessions.session import Session, Trail
from evaluators.transcripts.sessions.written_once import call_key, content_key, message_key


class Known(Struct, frozen=True):
    """The calls and messages of a session's history that were imported before."""

    calls: frozenset[str] = frozenset()
    messages: frozenset[str] = frozenset()
    """Those whose tokens count there, as hashes of their ids."""
    source: str = ""
    """The file that they were imported from."""


class Traced(Struct, frozen=True):
    """A kept session, and what shows whether another file has its calls."""

    kept: KeptSession
    trail: Trail
    known: Known = Known()


class UncopiedSession(Struct, frozen=True):
    """A session with its own calls only."""

    kept: KeptSession
    copied: int = 0
    """Commands that are counted in another session."""
    source: str = ""
    """The file of that session."""


def without_copies(sessions: Sequence[Traced]) -> list[UncopiedSession]:
    """Return the sessions in their order, each with the commands and tokens that no earlier one has.

    Only a session that says that it continues or forks another is compared with it; of two, the one that was
    forked is the later one, else the one that began or ended later.
    """
    order = sorted(range(len(sessions)), key=lambda at: _age(sessions[at]))
    by_message: dict[int, int] = {}
    by_id = {session.kept.id: at for at, session in enumerate(sessions)}
    uncopied: dict[int, UncopiedSession] = {}
    for at in order:
        session = sessions[at]
        shared = {by_message[message] for message in session.trail.messages if message in by_message}
        linked = sorted((shared | {by_id[id] for id in session.trail.forked_from if id in by_id}) - {at})
        earlier = [sessions[other] for other in linked if other in uncopied]
        uncopied[at] = _leave_out_copies(
            session, [other for other in earlier if other.kept.id != session.kept.id]
        )
        for message in session.trail.messages:
            by_message.setdefault(message, at)
    return [uncopied[at] for at in range(len(sessions))]


def _age(session: Traced) -> tuple[bool, str, str, str]:
    return bool(session.trail.forked_from), session.kept.started, session.kept.finished, session.kept.file


def _leave_out_copies(session: Traced, earlier: Sequence[Traced]) -> UncopiedSession:
    calls, messages = set(session.known.calls), set(session.known.messages)
    for other in earlier:
        calls.update(*other.trail.calls.values())
        messages |= other.trail.seen
    copied = {n for n, keys in session.trail.calls.items() if not calls.isdisjoint(keys)}
    source = earlier[0].kept.file if earlier else session.known.source
    kept = _with_own_tokens(session, messages)
    return UncopiedSession(_without(kept, copied), len(copied), source) if copied else UncopiedSession(kept)


def _with_own_tokens(session: Traced, known: set[str]) -> KeptSession:
    """Return a session without the tokens of messages that count elsewhere."""
    tokens = session.trail.tokens
    own = {id: used for id, used in tokens.items() if id not in known}
    if len(own) == len(tokens):
        return structs.replace(session.kept, messages=tuple(own))
    transcript = structs.replace(
        session.kept.transcript,
        usage=total_usage(used for _, used in own.values()) or Usage(),
        usage_by_model=by_model(own.values()),
    )
    return structs.replace(session.kept, transcript=transcript, wasted=(), messages=tuple(own))


def _without(session: KeptSession, copied: set[int]) -> KeptSession:
    """Return a session without these commands; its wasted tokens are no longer known."""
    left = [command for command in session.commands if command.n not in copied]
    if session.is_whole:
        commands = number_commands((as_found(command), command.event) for command in left)
        return structs.replace(session, commands=commands, wasted=())
    commands = number_commands((as_found(command), 2 * n) for n, command in enumerate(left))
    events = [
        structs.replace(event, id=str(n))
        for n, command in enumerate(left)
        for event in session.transcript.events[2 * command.n : 2 * command.n + 2]
    ]
    transcript = structs.replace(session.transcript, events=tuple(events))
    return structs.replace(session, commands=commands, transcript=transcript, wasted=())


def as_found(command: Command) -> FoundCommand:
    """Return a command without its number and what follows from it."""
    names = set(FoundCommand.__struct_fields__) - {"end"}
    fields = {name: getattr(command, name) for name in names}
    return FoundCommand(end="reported" if command.end == "unknown" else command.end, **fields)


def describe_copies(name: str, counted: UncopiedSession) -> Iterator[str]:
    """Yield what to say of copied calls."""
    if counted.copied:
        calls = "1 call is" if counted.copied == 1 else f"{counted.copied} calls are"
        yield f"{name}: {calls} copied from {counted.source} and counted there."


def join_parts(sessions: Iterable[Traced]) -> list[Traced]:
    """Return the sessions in their order, those of one agent with the same id as one.

    A call that two parts have counts once, and so do a message's tokens. Where only the sums of tokens are known, those
    of parts that share a call are the larger ones, of others their sum.
    """
    by_id: dict[tuple[str, str], list[Traced]] = {}
    for session in sessions:
        by_id.setdefault((session.kept.agent, session.kept.id), []).append(session)
    return [_join(parts) for parts in by_id.values()]


def _join(parts: list[Traced]) -> Traced:
    """Return parts as one: the one with the most commands, with what only others have."""
    first, *others = sorted(parts, key=lambda part: (-len(part.kept.commands), part.kept.started))
    for other in others:
        first = _add(first, other)
    return first


def _find_missing(one: Traced, other: Traced) -> tuple[list[Command], dict[int, Command]]:
    """Return the commands that only the other part has, and those with an end that the first part lacks, by number."""
    known = {key for keys in one.trail.calls.values() for key in keys}
    new = [each for each in other.kept.commands if known.isdisjoint(other.trail.calls.get(each.n, ()))]
    ended = {
        key: each
        for each in other.kept.commands
        if each.end != "unknown"
        for key in other.trail.calls.get(each.n, ())
    }
    ends = {
        each.n: found
        for each in one.kept.commands
        if each.end == "unknown"
        and (found := next((ended[key] for key in one.trail.calls.get(each.n, ()) if key in ended), None))
    }
    return new, ends


def _add(one: Traced, other: Traced) -> Traced:
    new, ends = _find_missing(one, other)
    shares = bool(one.trail.all_calls & other.trail.all_calls or one.trail.seen & other.trail.seen)
    if (
        not new
        and not ends
        and (shares or one.kept.sha256 == other.kept.sha256)
        and other.trail.seen <= one.trail.seen
    ):
        return one
    tokens = {**other.trail.tokens, **one.trail.tokens}
    if one.trail.tokens and not other.trail.tokens and not shares and other.kept.transcript.usage:
        # Of a part without the tool, only the sum is known.
        tokens[message_key(other.kept.sha256)] = other.kept.model, other.kept.transcript.usage
    transcript = _join_usage(one, other, tokens, shares=shares)
    mine = ((other, ends[each.n]) if each.n in ends else (one, each) for each in one.kept.commands)
    pairs = sorted([*mine, *((other, each) for each in new)], key=_began)
    commands, events = _join_events(pairs, one, other)
    keys = [source.trail.calls.get(each.n, ()) for source, each in pairs]
    kept, more = one.kept, other.kept
    both = (kept.not_run, more.not_run), (kept.mentioned, more.mentioned)
    not_run, mentioned = (max(pair) if shares else sum(pair) for pair in both)
    return Traced(
        structs.replace(
            kept,
            sha256=hashlib.sha256("".join(sorted((kept.sha256, more.sha256))).encode()).hexdigest(),
            commands=commands,
            transcript=structs.replace(transcript, events=events),
            wasted=(),
            started=min(filter(None, (kept.started, more.started)), default=""),
            finished=max(kept.finished, more.finished),
            not_run=not_run,
            mentioned=mentioned,
            copies=tuple(dict.fromkeys((*kept.copies, *more.copies))),
        ),
        Trail(
            one.trail.messages | other.trail.messages,
            one.trail.forked_from | other.trail.forked_from,
            one.trail.root or other.trail.root,
            dict(enumerate(keys)),
            tokens,
            one.trail.seen | other.trail.seen,
            all_calls=one.trail.all_calls | other.trail.all_calls,
        ),
        one.known,
    )


def _began(pair: tuple[Traced, Command]) -> tuple[str, int]:
    source, command = pair
    at = command.event if source.kept.is_whole else 2 * command.n
    event = source.kept.transcript.events[at] if at is not None else None
    return (event.timestamp if event else "") or source.kept.started, command.n


def _join_usage(
    one: Traced, other: Traced, tokens: dict[str, tuple[str, Usage]], *, shares: bool
) -> Transcript:
    mine, more = one.kept.transcript, other.kept.transcript
    if tokens:
        usage = total_usage(used for _, used in tokens.values())
        return structs.replace(mine, usage=usage, usage_by_model=by_model(tokens.values()))
    if shares:
        larger = max(mine, more, key=lambda each: each.usage.input if each.usage else -1)
        return structs.replace(
            mine, usage=larger.usage, usage_by_model=larger.usage_by_model, cost_usd=larger.cost_usd
        )
    costs = [cost for cost in (mine.cost_usd, more.cost_usd) if cost is not None]
    return structs.replace(
        mine,
        usage=total_usage([mine.usage, more.usage]),
        usage_by_model=by_model([*mine.usage_by_model.items(), *more.usage_by_model.items()]),
        cost_usd=sum(costs) if costs else None,
    )


def _join_events(
    pairs: Sequence[tuple[Traced, Command]], one: Traced, other: Traced
) -> tuple[tuple[Command, ...], tuple[Event, ...]]:
    """Return the commands, renumbered, with their events: of whole transcripts all, else a call and a result each."""
    if not one.kept.is_whole:
        numbered = number_commands((as_found(command), 2 * n) for n, (_, command) in enumerate(pairs))
        events = tuple(
            structs.replace(event, id=str(n))
            for n, (source, command) in enumerate(pairs)
            for event in source.kept.transcript.events[2 * command.n : 2 * command.n + 2]
        )
        return numbered, events
    begins = (one, other) if one.kept.started <= other.kept.started else (other, one)
    places: dict[tuple[int, int], int] = {}
    joined: list[Event] = []
    seen: set[tuple[str, str | None]] = set()
    for source in begins:
        for at, event in enumerate(source.kept.transcript.events):
            key = content_key(event), event.timestamp
            if source is begins[0] or key not in seen:
                places[id(source), at] = len(joined)
                joined.append(event)
            seen.add(key)
    found = ((as_found(each), places.get((id(source), each.event or 0))) for source, each in pairs)
    return number_commands(found), tuple(joined)


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
    """Wasted tokens, if the agent reports the tokens of each turn."""
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
        by_event = {call.index: call for call in pair_calls(self.transcript.events)}
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
    by_index = {call.index: call for call in pair_calls(read.events)}
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

"""Add what sub-agents did, which an agent's own stream leaves out, from the session files that its program wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from typing import IO

from msgspec import structs

from evaluators.model import Event, Transcript, total_usage
from evaluators.transcripts.sessions import codex, copilot_cli, gemini_cli, opencode, qwen_code
from evaluators.transcripts.sessions.json_files import Problems, UnreadableSession
from evaluators.transcripts.sessions.session import Session
from evaluators.transcripts.stream import unseen_sentence

SUB_AGENT, MAIN = "sub-agent-", "session"
"""How the artifacts with these files are named: one for each sub-agent, and the agent's own where it was cut off."""

_READERS: Mapping[str, Callable[[IO[bytes], Problems], Iterator[Session]]] = {
    "codex": codex.parse,
    "opencode": opencode.parse,
}
_WITH_ENDS: Mapping[str, Callable[[IO[bytes], Problems], Iterator[Session]]] = {
    "gemini_cli": gemini_cli.parse,
    "qwen_code": qwen_code.parse,
    "copilot_cli": copilot_cli.parse,
}
"""Agents whose own session file tells what their stream leaves out: the ends of commands, or tokens."""


def is_own_account(files: Iterable[str]) -> bool:
    """Return whether session files are among these artifacts: what an agent's program wrote about itself."""
    return any(name == MAIN or name.startswith(SUB_AGENT) for name in files)


def with_sub_agents(transcript: Transcript, parser: str, files: Mapping[str, bytes]) -> Transcript:
    """Return the transcript with the events and tokens of sub-agents, marked with the agent's id.

    A session that was cut off gets the tokens of its own file, and the calls that still ran; their ends are unknown.
    """
    if parser in _WITH_ENDS and MAIN in files:
        return _with_own_ends(transcript, _WITH_ENDS[parser], files[MAIN])
    if parser not in _READERS:
        return transcript
    problems = Problems()
    main_sessions = [
        session
        for name, content in files.items()
        if name == MAIN
        for session in _read(parser, content, problems)
    ]
    subs = [
        session
        for name, content in sorted(files.items())
        if name.startswith(SUB_AGENT)
        for session in _read(parser, content, problems)
    ]
    usage = max(
        filter(None, (transcript.usage, *(session.transcript.usage for session in main_sessions))),
        key=lambda used: used.input,
        default=None,
    )
    running = _running(main_sessions, transcript) if parser == "opencode" else ()
    return structs.replace(
        transcript,
        events=(
            *transcript.events,
            *running,
            *(event for session in subs for event in _mark_events(session)),
        ),
        usage=total_usage([usage, *(session.transcript.usage for session in subs)]),
        cost_usd=_sum_of_costs([transcript.cost_usd, *(session.transcript.cost_usd for session in subs)]),
        problems=(*_without_seen(transcript, len(subs)), *problems),
        unseen_agents=max(0, transcript.unseen_agents - len(subs)),
    )


def _with_own_ends(
    transcript: Transcript,
    parse: Callable[[IO[bytes], Problems], Iterator[Session]],
    content: bytes,
) -> Transcript:
    """Return the transcript with the exit codes of the agent's own session file, and its tokens where it has more."""
    problems = Problems()
    try:
        read = next(parse(BytesIO(content), problems)).transcript
    except UnreadableSession as error:
        return structs.replace(
            transcript, problems=(*transcript.problems, f"The agent's session file can't be read: {error}")
        )
    codes = {event.id: event.exit_code for event in read.events if event.exit_code is not None and event.id}
    events = tuple(
        structs.replace(event, exit_code=codes[event.id])
        if event.type == "tool_result" and event.exit_code is None and not event.not_run and event.id in codes
        else event
        for event in transcript.events
    )
    stream_usage, file_usage = transcript.usage, read.usage
    has_more = file_usage is not None and (stream_usage is None or file_usage.input >= stream_usage.input)
    return structs.replace(
        transcript,
        events=events,
        usage=file_usage if has_more else stream_usage,
        usage_by_model=read.usage_by_model if has_more else transcript.usage_by_model,
        problems=(*transcript.problems, *problems),
    )


def _without_seen(transcript: Transcript, seen: int) -> tuple[str, ...]:
    """Return the transcript's problems, without what it says of unseen sub-agents if all were seen."""
    if not seen or seen < transcript.unseen_agents:
        return transcript.problems
    return tuple(each for each in transcript.problems if each != unseen_sentence(transcript.unseen_agents))


def _read(parser: str, content: bytes, problems: Problems) -> list[Session]:
    try:
        return list(_READERS[parser](BytesIO(content), problems))
    except UnreadableSession as error:
        problems.add(1, f"A sub-agent's session can't be read: {error}")
        return []


def _running(sessions: Iterable[Session], transcript: Transcript) -> Iterator[Event]:
    """Yield the calls that the agent's stream lacks, because opencode reports a call once it has ended."""
    known = {event.id for event in transcript.events if event.type == "tool_call"}
    for session in sessions:
        events = session.transcript.events
        ended = {event.id for event in events if event.type == "tool_result"}
        yield from (event for event in events if event.type == "tool_call" and event.id not in known | ended)


def _mark_events(session: Session) -> Iterator[Event]:
    """Yield a session's own events with its id, under ids that no other session has."""
    for event in session.transcript.events[session.trail.replayed :]:
        id = f"{session.id}/{event.id}" if event.id else None
        # What the main agent asked isn't a message of a person.
        role = "agent" if event.role == "user" else event.role
        yield structs.replace(event, id=id, role=role, metadata={**event.metadata, "agent": session.id})


def _sum_of_costs(costs: Iterable[float | None]) -> float | None:
    known = [each for each in costs if each is not None]
    return sum(known) if known else None

"""Add what sub-agents did, which an agent's own stream leaves out, from the session files that its program wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import IO

from msgspec import structs

from evaluators.model import Event, Transcript, total_usage
from evaluators.transcripts.endings import ending_of
from evaluators.transcripts.sessions import claude_code, codex, copilot_cli, gemini_cli, opencode, qwen_code
from evaluators.transcripts.sessions.session import Problems, Session, UnreadableSession
from evaluators.transcripts.stream import unseen_sentence

SUB_AGENT, MAIN = "sub-agent-", "session"
"""How the artifacts with these files are named: one for each sub-agent, and the agent's own where it was cut off."""

_READERS: Mapping[str, Callable[[IO[bytes], Problems], Iterator[Session]]] = {
    "claude_code": claude_code.parse,
    "codex": codex.parse,
    "opencode": opencode.parse,
    "gemini_cli": gemini_cli.parse,
    "qwen_code": qwen_code.parse,
    "copilot_cli": copilot_cli.parse,
}
_WITH_ENDS = frozenset(("gemini_cli", "qwen_code", "copilot_cli"))
"""Agents whose own session file has what their stream leaves out: the ends of commands, or tokens."""
OWN_ACCOUNT = (
    "The stream has no closing event, although the program ended by itself: commands, answer and tokens are from "
    "its session file, the agent's own account."
)


def is_own_account(files: Iterable[str]) -> bool:
    """Return whether session files are among these artifacts: what an agent's program wrote about itself."""
    return any(name == MAIN or name.startswith(SUB_AGENT) for name in files)


def with_sub_agents(transcript: Transcript, parser: str, files: Mapping[str, bytes]) -> Transcript:
    """Return the transcript with the events and tokens of sub-agents, marked with the agent's id.

    A session that was cut off or failed gets the tokens of its own file, and the calls that still ran; their ends are
    unknown.
    """
    if parser not in _READERS or not files:
        return transcript
    problems = Problems()
    main_sessions = _read(parser, files.get(MAIN), problems)
    if parser in _WITH_ENDS and main_sessions:
        # The transcript with the exit codes of the agent's own session file.
        codes = {
            event.id: event.exit_code
            for event in main_sessions[0].transcript.events
            if event.exit_code is not None and event.id
        }
        events = tuple(
            structs.replace(event, exit_code=codes[event.id])
            if event.type == "tool_result"
            and event.exit_code is None
            and not event.not_run
            and event.id in codes
            else event
            for event in transcript.events
        )
        transcript = structs.replace(transcript, events=events)
    streamed = {event.id for event in transcript.events if event.type == "tool_call"}
    subs = [
        session
        for name, content in sorted(files.items())
        if name.startswith(SUB_AGENT)
        for session in _read(parser, content, problems)
        # Qwen Code streams those in the foreground, too; a rollout of Codex may repeat its parent's calls.
        if parser != "qwen_code"
        or not any(event.type == "tool_call" and event.id in streamed for event in session.transcript.events)
    ]
    transcript = _with_tokens(transcript, parser, main_sessions, subs)
    running = _running(main_sessions, transcript) if parser == "opencode" else ()
    known = [
        each
        for each in [transcript.cost_usd, *(session.transcript.cost_usd for session in subs)]
        if each is not None
    ]
    return structs.replace(
        transcript,
        events=(
            *transcript.events,
            *running,
            *(event for session in subs for event in _mark_events(session)),
        ),
        cost_usd=sum(known) if known else None,
        problems=(*_without_seen(transcript, len(subs)), *problems),
        unseen_agents=max(0, transcript.unseen_agents - len(subs)),
    )


def read_own_account(parser: str, raw: bytes, files: Mapping[str, bytes]) -> Transcript | None:
    """Return a session by the agent's own file, where its stream has no closing event and the file ends with an answer.

    For a program that ended by itself with 0: what it wrote last into its stream may be lost.
    """
    ending = ending_of(parser, raw)
    if (ending is not None and ending.closed) or parser not in _READERS:
        return None
    sessions = _read(parser, files.get(MAIN), Problems())
    found = sessions[0].transcript if sessions else Transcript()
    steps = [
        event for event in found.events if event.type in ("message", "tool_call", "tool_result", "error")
    ]
    if not steps or steps[-1].type != "message" or steps[-1].role != "assistant":
        return None
    return structs.replace(found, problems=(*found.problems, OWN_ACCOUNT))


def _with_tokens(
    transcript: Transcript, parser: str, mains: Sequence[Session], subs: Sequence[Session]
) -> Transcript:
    """Return the transcript with all that the session used: by its stream or by its files, whichever has more.

    The streams of `_WITH_ENDS` include their sub-agents, those of the others don't.
    """
    of_subs = [session.transcript.usage for session in subs]
    streamed = transcript.usage if parser in _WITH_ENDS else total_usage([transcript.usage, *of_subs])
    written = [total_usage([session.transcript.usage, *of_subs]) for session in mains]
    most = max(filter(None, (*written, streamed)), key=lambda used: used.input, default=None)
    own = mains[0].transcript if mains else None
    if most is None or own is None or subs or not own.usage_by_model or most == streamed:
        return structs.replace(transcript, usage=most)
    return structs.replace(transcript, usage=most, usage_by_model=own.usage_by_model)


def _without_seen(transcript: Transcript, seen: int) -> tuple[str, ...]:
    """Return the transcript's problems, without what it says of unseen sub-agents if all were seen."""
    if not seen or seen < transcript.unseen_agents:
        return transcript.problems
    return tuple(each for each in transcript.problems if each != unseen_sentence(transcript.unseen_agents))


def _read(parser: str, content: bytes | None, problems: Problems) -> list[Session]:
    if content is None:
        return []
    try:
        return list(_READERS[parser](BytesIO(content), problems))
    except UnreadableSession as error:
        problems.append(f"The agent's session file can't be read: {error}")
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

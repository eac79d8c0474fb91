"""Calls that a session's file took over from another session when it was forked or continued."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, structs

from evaluators.model import Command, FoundCommand, Usage, total_usage
from evaluators.tool_use.tool_commands import number_commands
from evaluators.transcripts.claude_code import by_model
from evaluators.transcripts.sessions.kept import KeptSession
from evaluators.transcripts.sessions.session import Trail


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

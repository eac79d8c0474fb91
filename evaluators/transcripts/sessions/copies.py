"""Calls that a session's file took over from another session when it was forked or continued."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, structs

from evaluators.model import Command
from evaluators.tool_use.tool_commands import FoundCommand, number_commands
from evaluators.transcripts.sessions.kept import KeptSession
from evaluators.transcripts.sessions.session import Trail


class Known(Struct, frozen=True):
    """The calls of a session's history that were imported before."""

    calls: frozenset[str] = frozenset()
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
    """Return the sessions in their order, each with the commands that no earlier one has.

    Only a session that says that it continues or forks another is compared with it; of two, the one that was
    forked is the later one, else the one that began or ended later.
    """
    order = sorted(range(len(sessions)), key=lambda at: _age(sessions[at]))
    by_message: dict[int, int] = {}
    by_id = {each.kept.id: at for at, each in enumerate(sessions)}
    found: dict[int, UncopiedSession] = {}
    for at in order:
        own = sessions[at]
        earlier = sorted(_find_linked(own, by_message, by_id) - {at})
        earlier = [each for each in earlier if each in found and sessions[each].kept.id != own.kept.id]
        found[at] = _leave_out_copies(own, [sessions[each] for each in earlier])
        for message in own.trail.messages:
            by_message.setdefault(message, at)
    return [found[at] for at in range(len(sessions))]


def _age(session: Traced) -> tuple[bool, str, str, str]:
    return bool(session.trail.forked_from), session.kept.started, session.kept.finished, session.kept.file


def _find_linked(own: Traced, by_message: Mapping[int, int], by_id: Mapping[str, int]) -> set[int]:
    shared = {by_message[message] for message in own.trail.messages if message in by_message}
    return shared | {by_id[id] for id in own.trail.forked_from if id in by_id}


def _leave_out_copies(own: Traced, earlier: Sequence[Traced]) -> UncopiedSession:
    known: set[str] = set(own.known.calls)
    for each in earlier:
        known.update(*each.trail.calls.values())
    copied = {n for n, keys in own.trail.calls.items() if not known.isdisjoint(keys)}
    source = earlier[0].kept.file if earlier else own.known.source
    return (
        UncopiedSession(_without(own.kept, copied), len(copied), source)
        if copied
        else UncopiedSession(own.kept)
    )


def _without(kept: KeptSession, copied: set[int]) -> KeptSession:
    """Return a session without these commands; its wasted tokens are no longer known."""
    left = [each for each in kept.commands if each.n not in copied]
    if kept.is_whole:
        commands = number_commands((_as_found(each), each.event) for each in left)
        return structs.replace(kept, commands=commands, wasted=())
    commands = number_commands((_as_found(each), 2 * n) for n, each in enumerate(left))
    events = [
        structs.replace(event, id=str(n))
        for n, each in enumerate(left)
        for event in kept.transcript.events[2 * each.n : 2 * each.n + 2]
    ]
    transcript = structs.replace(kept.transcript, events=tuple(events))
    return structs.replace(kept, commands=commands, transcript=transcript, wasted=())


def _as_found(command: Command) -> FoundCommand:
    names = set(FoundCommand.__struct_fields__) - {"end"}
    fields = {name: getattr(command, name) for name in names}
    return FoundCommand(end="reported" if command.end == "unknown" else command.end, **fields)


def describe_copies(name: str, counted: UncopiedSession) -> Iterator[str]:
    """Yield what to say of copied calls."""
    if counted.copied:
        calls = "1 call is" if counted.copied == 1 else f"{counted.copied} calls are"
        yield f"{name}: {calls} copied from {counted.source} and counted there."

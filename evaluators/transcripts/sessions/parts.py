"""Files that hold parts of one session, such as one that went on in another folder: joined by their calls' ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from msgspec import structs

from evaluators.model import Command, Event, Transcript, Usage, total_usage
from evaluators.tool_use.tool_commands import number_commands
from evaluators.transcripts.claude_code import by_model
from evaluators.transcripts.sessions.copies import Traced, as_found
from evaluators.transcripts.sessions.session import Trail
from evaluators.transcripts.sessions.written_once import content_key, message_key


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
    """Return the commands, numbered anew, with their events: of whole transcripts all, else a call and a result each."""
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

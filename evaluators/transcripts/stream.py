"""What the streams of coding agents have in common: JSON objects, mostly one a line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from evaluators.json_values import int_or_none
from evaluators.model import Event, Json, Transcript, Usage
from evaluators.transcripts.reading import (
    NoKnownEvents,
    UnreadableTranscript,
    as_text,
    line_problems,
    no_events,
    shown_kinds,
)

_CALL = re.compile(r"tool|function|call|command", re.IGNORECASE)


def refuse_unread_calls(events: Sequence[Event], what: str, passing: Iterable[str] = ()) -> None:
    """Raise `NoKnownEvents` if no event is a call and unknown ones look like calls.

    Gates on the commands would pass because there are none. `passing` are names of events that aren't calls.
    """
    if any(event.type == "tool_call" for event in events):
        return
    apart = frozenset(passing)
    unknown = [event for event in events if event.type == "raw" and event.name not in apart]
    suspects = {kind for event in unknown for kind in _kinds(event) if _CALL.search(kind)}
    if suspects:
        raise NoKnownEvents(
            f"The output isn't a {what}: it has events that look like tool calls and can't be read as such "
            f"({shown_kinds(suspects)}). Choose the parser that fits it."
        )


def _kinds(event: Event) -> Iterator[str]:
    """Yield the type of an unknown event, and those of what other programs' events hold."""
    yield event.name or ""
    held = event.metadata
    # Where Codex, its session files and opencode have what happened.
    yield from (_type(held.get(name)) for name in ("item", "payload", "part"))
    message = held.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        yield from map(_type, content)


def _type(value: Json) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


Object = dict[str, Json]
# An agent writes what is searched: without bounds, its digits would take quadratic time.
VERSION = re.compile(r"(?<!\d)(\d{1,9})\.(\d{1,9})(?:\.\d{1,9})?")

_decode = msgspec.json.Decoder().decode


def parse_objects(raw: bytes, agent: str) -> tuple[list[Object], tuple[str, ...]]:
    """Return the JSON objects of a stream, and sentences on the other lines.

    Also read: one JSON value over all lines, and a list of objects. Raises `UnreadableTranscript` where
    there is no object at all.
    """
    text = as_text(raw).strip()
    if not text:
        raise UnreadableTranscript(f"{agent} printed nothing. Look at its standard error output.")
    whole = json_or_none(text)
    if isinstance(whole, dict):
        return [whole], ()
    if isinstance(whole, list) and whole and all(isinstance(item, dict) for item in whole):
        return whole, ()
    return _lines(text, agent)


def check_known(
    events: Iterable[Event], lines: Iterable[Object], agent: str, silent: Collection[str]
) -> list[Event]:
    """Return the events. Raises `UnreadableTranscript` for another program's stream.

    That is one where no line says anything, or whose calls the reader does not know.

    `silent` are the types of lines that are the agent's and become no event.
    """
    events = list(events)
    kinds = [text_or_none(line.get("type")) or "" for line in lines]
    if all(event.type == "raw" for event in events) and not any(kind in silent for kind in kinds):
        raise no_events(f"stream of {agent}", kinds)
    refuse_unread_calls(events, f"stream of {agent}")
    return events


def mapping_or_empty(value: Json) -> Object:
    """Return an object as it is, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def text_or_none(value: Json) -> str | None:
    """Return a text as it is, and None for anything else."""
    return value if isinstance(value, str) else None


def count_or_zero(value: Json) -> int:
    """Return a count, 0 for anything else."""
    return int_or_none(value) or 0


def format_milliseconds(milliseconds: Json) -> str | None:
    """Return milliseconds since 1970 as ISO 8601, None for anything else."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


def make_transcript(
    events: Iterable[Event],
    *,
    answer: str = "",
    usage: Usage | None = None,
    usage_by_model: Mapping[str, Usage] = {},
    cost_usd: float | None = None,
    problems: tuple[str, ...] = (),
) -> Transcript:
    """Return a stream's transcript; without an answer, the agent's last message is the answer, but no sub-agent's."""
    events = tuple(events)
    said = (event for event in events if event.type == "message" and event.role != "user")
    answers = [event.text for event in said if event.text and "agent" not in event.metadata]
    return Transcript(
        events=events,
        source="stream",
        text="\n".join(answers),
        answer=(answer or (answers[-1] if answers else "")).strip(),
        usage=usage,
        usage_by_model=dict(usage_by_model),
        cost_usd=cost_usd,
        problems=problems,
        unknown_events=sum(event.type == "raw" for event in events),
    )


def unseen_sentence(count: int) -> str:
    """Return what a transcript says of sub-agents whose sessions it lacks."""
    number = "1 sub-agent session" if count == 1 else f"{count} sub-agent sessions"
    return f"{number} not seen: the agent's output does not hold their commands, tokens and messages."


def with_unseen_agents(read: Transcript, count: int) -> Transcript:
    """Return a transcript that says how many sub-agents its stream leaves out."""
    if not count:
        return read
    return msgspec.structs.replace(
        read, unseen_agents=count, problems=(*read.problems, unseen_sentence(count))
    )


def newer_version(agent: str, version: str, newest_major: int) -> str:
    """Return a note on a major version that is not known yet; empty for a known one."""
    match = VERSION.search(version)
    if match is None or int(match[1]) <= newest_major:
        return ""
    return (
        f"{agent} {match[0]} is newer than the versions that evalhub knows (up to {newest_major}.x): "
        "compare the commands with the raw output."
    )


def make_unknown_event(item: Mapping[str, Json], kind: str) -> Event:
    """Return what no reader knows as an event that is kept and not evaluated."""
    return Event("raw", name=kind, metadata=dict(item))


def text_of_message(content: Json) -> str:
    """Return the text of a message, which is a string or a list of parts."""
    if isinstance(content, list):
        return "\n".join(filter(None, (text_or_none(mapping_or_empty(part).get("text")) for part in content)))
    return text_or_none(content) or ""


def json_or_none(content: str | bytes) -> Json:
    """Return a decoded JSON value, None for anything else."""
    try:
        return _decode(content)
    except (ValueError, RecursionError):
        return None


def _lines(text: str, agent: str) -> tuple[list[Object], tuple[str, ...]]:
    objects: list[Object] = []
    bad: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        value = json_or_none(line)
        if isinstance(value, dict):
            objects.append(value)
        elif line.strip():
            bad.append(number)
    if not objects:
        raise UnreadableTranscript(
            f"The output isn't a stream of {agent}: it begins with '{text[:60]}'. Choose the parser that fits it."
        )
    return objects, line_problems(bad, "aren't JSON objects")

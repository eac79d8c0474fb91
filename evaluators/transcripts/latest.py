"""What an agent does now: the last call in a part of its stream, while the rest is still to come."""

from __future__ import annotations

from itertools import islice

import msgspec

from evaluators.model import Event
from evaluators.transcripts import claude_code, codex, events, opencode
from evaluators.transcripts.reading import UnreadableTranscript

_READERS = {
    "events": events.parse,
    "codex": codex.parse,
    "claude_code": claude_code.parse,
    "opencode": opencode.parse,
}
"""Those whose lines can be read one by one."""

MOST_LINES = 2000
"""Lines at the end that are looked at: a flood of others is not worth the processor's time."""


def latest_call(parser: str, lines: bytes) -> str:
    """Return the last tool call in some lines of a stream, empty where they tell of none.

    A shell's call is its command, any other the tool's name with what it was given as JSON. Lines that cannot be
    read, such as one whose beginning is missing, are passed over, and so are all before the last `MOST_LINES`; a format
    that does not have its events in lines tells of none.
    """
    read = _READERS.get(parser)
    # From the end: most often the last lines tell, and all before them need not be read.
    for line in islice(reversed(lines.split(b"\n")), MOST_LINES) if read else ():
        try:
            told = read(line).events if read and line.strip() else ()
        except UnreadableTranscript:
            continue
        for event in reversed(told):
            if event.type == "tool_call" and (said := _said(event)):
                return said
    return ""


def _said(event: Event) -> str:
    if event.command is not None:
        return event.command
    given = event.input
    return f"{event.name or 'tool'} {'' if given is None else msgspec.json.encode(given).decode()}".rstrip()

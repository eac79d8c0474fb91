"""Cut values that are nested so deep that pages and exports could not read them again."""

from __future__ import annotations

import msgspec

from evalhub.lib.limits import DEEPEST_JSON
from evaluators.json_values import cut_deep
from evaluators.model import Event, Transcript

_PROBLEM = f"Values nested more than {DEEPEST_JSON} levels were cut."


def without_deep_values(transcript: Transcript) -> Transcript:
    """Return the transcript with text in place of what is nested too deep, and a sentence if there was any."""
    deep_events = {index: event for index, event in enumerate(transcript.events) if _is_deep(event)}
    if not deep_events:
        return transcript
    events = list(transcript.events)
    for index, event in deep_events.items():
        events[index] = msgspec.structs.replace(
            event,
            input=cut_deep(event.input),
            output=cut_deep(event.output),
            metadata=cut_deep(event.metadata),
        )
    problems = dict.fromkeys((*transcript.problems, _PROBLEM))
    return msgspec.structs.replace(transcript, events=tuple(events), problems=tuple(problems))


def _is_deep(event: Event) -> bool:
    level = [
        value
        for value in (event.input, event.output, event.metadata)
        if value and isinstance(value, dict | list)
    ]
    for _ in range(DEEPEST_JSON):
        if not level:
            return False
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, dict | list)
        ]
    return bool(level)

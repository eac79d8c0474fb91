"""Cut values that are nested so deep that pages and exports could not read them again."""

from __future__ import annotations

import msgspec

from evaluators.model import Event, Json, Transcript

DEEPEST = 60
"""Levels of lists and objects within each other that are kept."""
CUT = f"[nested more than {DEEPEST} levels]"
_PROBLEM = f"Values nested more than {DEEPEST} levels were cut."


def without_deep_values(transcript: Transcript) -> Transcript:
    """Return the transcript with text in place of what is nested too deep, and a sentence if there was any."""
    found = {index: event for index, event in enumerate(transcript.events) if _is_deep(event)}
    if not found:
        return transcript
    events = list(transcript.events)
    for index, event in found.items():
        events[index] = msgspec.structs.replace(
            event, input=_cut(event.input), output=_cut(event.output), metadata=_cut(event.metadata)
        )
    problems = dict.fromkeys((*transcript.problems, _PROBLEM))
    return msgspec.structs.replace(transcript, events=tuple(events), problems=tuple(problems))


def _is_deep(event: Event) -> bool:
    level = [
        each for each in (event.input, event.output, event.metadata) if each and isinstance(each, dict | list)
    ]
    for _ in range(DEEPEST):
        if not level:
            return False
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, dict | list)
        ]
    return bool(level)


def _cut(value: Json, levels: int = DEEPEST) -> Json:
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return CUT
    if isinstance(value, dict):
        return {name: _cut(item, levels - 1) for name, item in value.items()}
    return [_cut(item, levels - 1) for item in value]

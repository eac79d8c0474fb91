"""Sessions that evalhub ended, by a time limit or otherwise: what was cut is unknown, not failed."""

from __future__ import annotations

from msgspec import structs

from evaluators.model import Event, Json, Transcript


def with_cut_ends(transcript: Transcript) -> Transcript:
    """Return the transcript of a session that was cut off.

    A failure that no later turn of its agent follows is unknown: programs report commands that were killed with
    them as failed, and nothing tells these from others.
    """
    events = transcript.events
    last: dict[Json, int] = {
        event.metadata.get("agent"): at for at, event in enumerate(events) if _is_turn(event)
    }
    cut_events = tuple(
        structs.replace(event, exit_code=None, success=None)
        if _has_failed(event) and at > last.get(event.metadata.get("agent"), -1)
        else event
        for at, event in enumerate(events)
    )
    return structs.replace(transcript, events=cut_events)


def _is_turn(event: Event) -> bool:
    """Return whether an event is the model's."""
    return event.type in ("tool_call", "model_step") or (
        event.type == "message" and event.role not in ("user", "agent")
    )


def _has_failed(event: Event) -> bool:
    return event.type == "tool_result" and (bool(event.exit_code) or event.success is False)

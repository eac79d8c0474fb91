"""What a target said, without the values of variables."""

from __future__ import annotations

from dataclasses import replace

from evaluators.redaction import mask_values, mask_values_in_bytes
from runs.providers.base import Recording


def masked(recording: Recording, values: tuple[str, ...]) -> Recording:
    """Return the recording without the values of variables, which are never stored."""
    if not values:
        return recording
    return replace(
        recording,
        raw=mask_values_in_bytes(recording.raw, values),
        events=mask_values_in_bytes(recording.events, values) if recording.events else recording.events,
        answer=mask_values(recording.answer, values) if recording.answer else recording.answer,
        stderr=mask_values(recording.stderr, values),
        notes=tuple(mask_values(note, values) for note in recording.notes),
    )

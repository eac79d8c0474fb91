"""Answers from a run's batch, used in place of single requests."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from evaluators.redaction import mask_values, mask_values_in_bytes
from runs.db.retry import retry_when_lost
from runs.models.job import BatchAnswer, ProviderBatch
from runs.targets.providers.base import (
    Availability,
    BatchedAnswer,
    Batching,
    CanBatch,
    Invocation,
    Provider,
    Recording,
)
from runs.targets.providers.options import ResolvedTarget

_encoder = msgspec.json.Encoder()


def row_of(trial_id: int, answer: BatchedAnswer, secrets: tuple[str, ...]) -> BatchAnswer:
    """Return the row of a batch's answer, without the secret values."""
    error = mask_values(answer.error, secrets)
    if answer.recording is None:
        return BatchAnswer(trial_id=trial_id, error=error)
    return BatchAnswer(
        trial_id=trial_id,
        data=_encoder.encode(replace(mask_recording(answer.recording, secrets), logs={})),
        error=error,
    )


class FromBatch:
    """A provider that answers from the run's batch, and sends a single request for trials without an answer."""

    def __init__(self, provider: Provider, run_id: int) -> None:
        self.provider = provider
        self.run_id = run_id
        self.works_in_folder = provider.works_in_folder

    @property
    def batching(self) -> Batching | str:
        """Return the batching of the provider."""
        return find_batching(self.provider)

    def check(self) -> Availability:
        """Check the provider."""
        return self.provider.check()

    def invoke(self, invocation: Invocation) -> Recording:
        """Return the batch's recording, else the provider's, with a note of the reason."""
        answers = BatchAnswer.objects.filter(
            trial__run=self.run_id, trial__scenario__key=invocation.spec.key, trial__index=invocation.trial
        )
        row = retry_when_lost(answers.first)
        if row is not None and row.data:
            recording = msgspec.json.decode(bytes(row.data), type=Recording)
            return replace(recording, notes=(*recording.notes, "Answered in the run's batch."))
        recording = self.provider.invoke(invocation)
        why = row.error if row is not None else self._why()
        return replace(
            recording, notes=(*recording.notes, f"Sent as a single request, not in a batch: {why}")
        )

    def _why(self) -> str:
        details = ProviderBatch.objects.filter(run=self.run_id).values_list("detail", flat=True)
        detail = retry_when_lost(details.first)
        return (detail or {}).get("reason") or "the batch had no answer for it."


def with_batch_answers(provider: Provider, target: ResolvedTarget, run_id: int) -> Provider:
    """Return a provider that answers from the run's batch if the target uses batching and the provider supports it."""
    uses_batch = target.options.provider_batching and not isinstance(find_batching(provider), str)
    return FromBatch(provider, run_id) if uses_batch else provider


def find_batching(provider: Provider) -> Batching | str:
    """Return what submits batches, or why there are none."""
    if isinstance(provider, CanBatch):
        return provider.batching
    return "Targets of this kind don't support batches."


def mask_recording(recording: Recording, values: tuple[str, ...]) -> Recording:
    """Return the recording without secret values."""
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

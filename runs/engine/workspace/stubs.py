"""Run a scenario with stubs on a model: the conversation, its time limit and its recording.

tool-forge eval runner, Stub-based multi-turn execution.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from evaluators.grading.stub_loop import MAX_TURNS, ModelTurn, StubMessage, StubRun, run_stubs
from evaluators.model import Price
from evaluators.transcripts.chat import as_lines
from runs.errors import ProviderError
from runs.targets.providers.base import Invocation, Recording


class Model(Protocol):
    """A model in conversation: `runs.targets.language_models.language_model.stub_model` makes one of a target."""

    invocation: Invocation
    """The invocation of the next turn, with the remaining time of the trial."""

    def __call__(self, messages: Sequence[StubMessage]) -> ModelTurn: ...

    @property
    def cost_usd(self) -> float | None: ...

    @property
    def price(self) -> Price | None: ...

    @property
    def notes(self) -> tuple[str, ...]: ...


def converse(invocation: Invocation, model: Model, *, max_turns: int = MAX_TURNS) -> Recording:
    """Return the recording of the model's conversation with the stubs of the invocation.

    The time limit applies to the entire conversation; beyond it the recording is timed out. Raises
    `ProviderError` if the model fails.
    """
    stubs = invocation.spec.stubs or {}
    limit, began = invocation.timeout_seconds, time.monotonic()

    def ask(messages: Sequence[StubMessage]) -> ModelTurn:
        remaining = limit - (time.monotonic() - began)
        if remaining <= 0:
            raise ProviderError(f"The conversation took longer than {limit:g} s.", kind="timeout")
        model.invocation = replace(invocation, timeout_seconds=remaining)
        return model(messages)

    try:
        run = run_stubs(invocation.prompt, stubs, ask, max_turns=max_turns)
    except ProviderError as error:
        if error.kind == "timeout":
            return Recording(timed_out=True, seconds=limit, notes=(str(error),))
        if error.kind == "cancelled":
            return Recording(cancelled=True, seconds=time.monotonic() - began, notes=(str(error),))
        raise error
    transcript = run.transcript
    return Recording(
        raw=as_lines(transcript),
        parser="events",
        answer=transcript.answer,
        exit_code=0,
        usage=transcript.usage,
        cost_usd=model.cost_usd,
        price=model.price,
        seconds=time.monotonic() - began,
        notes=(*model.notes, *_remarks(run)),
    )


def _remarks(run: StubRun) -> Iterator[str]:
    if run.missing_stubs:
        names = ", ".join(dict.fromkeys(run.missing_stubs))
        yield f"The model called tools without a stub and got an error: {names}."
    if run.unfinished:
        yield f"The model still called tools in its last turn ({run.turns}). Raise `maxTurns` if it needs more."

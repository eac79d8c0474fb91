"""A scenario with stubs on a model: the conversation, its clock, and what is recorded of it.

tool-forge eval runner, Stub-based multi-turn execution.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from evaluators.model import Json
from evaluators.staleness import RegisteredTool, Registry
from evaluators.stub_loop import MAX_TURNS, ModelTurn, StubMessage, StubRun, run_stubs
from evaluators.transcripts.chat import as_lines
from runs.providers.base import Invocation, ProviderError, Recording
from runs.providers.stub_chat import ToolSchema


class Model(Protocol):
    """A model in conversation: `runs.providers.language_model.stub_model` makes one of a target."""

    invocation: Invocation
    """What holds for its next turn; its time limit is what is left of the trial's."""

    def __call__(self, messages: Sequence[StubMessage]) -> ModelTurn: ...

    @property
    def cost_usd(self) -> float | None: ...

    @property
    def notes(self) -> tuple[str, ...]: ...


def tools_of(registry: Registry | None, stubs: Mapping[str, Json]) -> tuple[ToolSchema, ...]:
    """Return the tools that a model is offered: the registry's, and what is stubbed and stands in none."""
    registered = dict(registry.tools) if registry else {}
    unknown = {name: RegisteredTool() for name in stubs if name not in registered}
    return tuple(
        ToolSchema(name, tool.description or "", parameters_of(tool.input_schema))
        for name, tool in {**registered, **unknown}.items()
    )


def parameters_of(schema: Json) -> Json:
    """Return a tool's input as JSON Schema; None where the registry does not say.

    Taken are JSON Schema itself and tool-forge's own form, a mapping of fields with `type`, `description`
    and `optional`.
    """
    if not isinstance(schema, dict) or not schema:
        return None
    if isinstance(schema.get("type"), str) or any(key in schema for key in ("properties", "$ref", "anyOf")):
        return schema
    fields = {name: field for name, field in schema.items() if isinstance(field, dict)}
    return {
        "type": "object",
        "properties": {
            name: {key: value for key, value in field.items() if key != "optional"}
            for name, field in fields.items()
        },
        "required": [name for name, field in fields.items() if not field.get("optional")],
    }


def converse(invocation: Invocation, model: Model, *, max_turns: int = MAX_TURNS) -> Recording:
    """Let the model talk with the stubs of the invocation, and return what came of it.

    The time limit holds for the whole conversation; past it the recording is timed out. Raises
    `ProviderError` where the model cannot be asked.
    """
    stubs = invocation.stubs or {}
    limit, began = invocation.timeout_seconds, time.monotonic()

    def ask(messages: Sequence[StubMessage]) -> ModelTurn:
        left = limit - (time.monotonic() - began)
        if left <= 0:
            raise ProviderError(f"The conversation took longer than {limit:g} s.", kind="timeout")
        model.invocation = replace(invocation, timeout_seconds=left)
        return model(messages)

    try:
        run = run_stubs(invocation.prompt, stubs, ask, max_turns=max_turns)
    except ProviderError as error:
        return _ended(error, limit, time.monotonic() - began)
    return _recording(run, model, time.monotonic() - began)


def _ended(error: ProviderError, limit: float, seconds: float) -> Recording:
    if error.kind == "timeout":
        return Recording(timed_out=True, seconds=limit, notes=(str(error),))
    if error.kind == "cancelled":
        return Recording(cancelled=True, seconds=seconds, notes=(str(error),))
    raise error


def _recording(run: StubRun, model: Model, seconds: float) -> Recording:
    transcript = run.transcript
    return Recording(
        raw=as_lines(transcript),
        parser="events",
        answer=transcript.answer,
        exit_code=0,
        usage=transcript.usage,
        cost_usd=model.cost_usd,
        seconds=seconds,
        notes=(*model.notes, *_remarks(run)),
    )


def _remarks(run: StubRun) -> Iterator[str]:
    if run.missing_stubs:
        names = ", ".join(dict.fromkeys(run.missing_stubs))
        yield f"The model called tools that have no stub, and was told so: {names}."
    if run.unfinished:
        yield f"The model still called tools in its last turn ({run.turns}). Raise `maxTurns` if it needs more."

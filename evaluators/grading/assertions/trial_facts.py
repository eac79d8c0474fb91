"""The facts that assertions check, and the result for one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct

from evaluators.grading.evidence import Evidence
from evaluators.grading.template_tokens import TokenSources, resolve_tokens
from evaluators.model import Json, Transcript, Usage
from evaluators.tool_use.calls import Call, calls

CHARACTERS_PER_TOKEN = 4


class ToolCall(Struct, frozen=True):
    """One call of a tool, as the agent made it."""

    name: str
    params: dict[str, Json] = {}
    success: bool | None = None
    """None if not recorded."""
    seconds: float | None = None


class AnswerSize(Struct, frozen=True):
    """The size of an answer."""

    count: int
    source: Literal["usage", "tokenizer", "characters"]


class TrialFacts(Struct, frozen=True):
    """The facts about one trial."""

    answer: str = ""
    calls: tuple[ToolCall, ...] = ()
    duration_ms: float = 0.0
    usage: Usage | None = None
    sources: TokenSources = TokenSources()
    count_tokens: Callable[[str], int] | None = None
    executes_tools: bool = True
    """False for a model that only names the tools it would call."""

    @property
    def names(self) -> tuple[str, ...]:
        """Tool names in the order of calls."""
        return tuple(call.name for call in self.calls)

    @property
    def tokens(self) -> AnswerSize:
        """The answer's tokens: the endpoint's usage, else by the tokenizer, else characters / 4, rounded up."""
        if self.usage is not None and self.usage.output and not self.usage.estimated:
            return AnswerSize(self.usage.output, "usage")
        if self.count_tokens is not None:
            return AnswerSize(self.count_tokens(self.answer), "tokenizer")
        return AnswerSize(-(-len(self.answer) // CHARACTERS_PER_TOKEN), "characters")


class ValueResult(Struct, frozen=True):
    """The result for one value of an assertion."""

    state: Literal["passed", "failed", "skipped", "moot"]
    """A moot assertion has no meaning for this trial; it counts neither as run nor as skipped."""
    sentence: str = ""
    """Why it failed or was skipped, in the manner of the contract's samples: without a full stop."""
    tokens: tuple[str, ...] = ()
    """The unresolved tokens for which it was skipped."""
    hint: str = ""
    """A sentence that may help a person, and isn't part of the error."""


PASSED = ValueResult("passed")


def facts_of(evidence: Evidence) -> TrialFacts:
    """Return the facts that assertions need from the evidence."""
    return TrialFacts(
        answer=evidence.answer,
        calls=calls_of_transcript(evidence.transcript),
        # Floating point: 2.3 s is 2300 ms, not 2299.9999999999995.
        duration_ms=round(evidence.seconds * 1000, 6),
        usage=evidence.usage,
        sources=TokenSources(evidence.seed, evidence.snapshot),
        count_tokens=evidence.count_tokens,
        executes_tools=evidence.executes_tools,
    )


def calls_of_transcript(transcript: Transcript) -> tuple[ToolCall, ...]:
    """Return the tool calls of a transcript in order, with the success from their results."""
    return tuple(map(_tool_call, calls(transcript.events)))


def _tool_call(call: Call) -> ToolCall:
    params = call.event.input
    timed = call.result if call.result is not None and call.result.seconds is not None else call.event
    return ToolCall(
        call.event.name or "", params if isinstance(params, dict) else {}, _success(call), timed.seconds
    )


def _success(call: Call) -> bool | None:
    for event in (call.result, call.event):
        if event is not None and event.success is not None:
            return event.success
    return None if call.exit_code is None else call.exit_code == 0


def resolve_value(value: str, sources: TokenSources) -> Iterator[str | ValueResult]:
    """Yield the value with tokens replaced, or the reason to skip it."""
    resolved = resolve_tokens(value, sources)
    if resolved.text is None:
        yield ValueResult(
            "skipped",
            f"'{value}' was skipped: {', '.join(resolved.unresolved)} unresolved",
            resolved.unresolved,
        )
    elif not resolved.text:
        written = f"'{value}' resolves to an empty text" if value else "an empty text"
        yield ValueResult("skipped", f"{written} was skipped: every response contains it")
    else:
        yield resolved.text

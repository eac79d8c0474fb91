"""The raw output of an agent, read into a `Transcript`: one file a format, listed in `PARSERS`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from evaluators.model import Transcript, plausible_cost
from evaluators.transcripts import (
    aider,
    atif,
    chat,
    claude_code,
    codex,
    copilot_cli,
    gemini_cli,
    inspect_log,
    mini_swe_agent,
    opencode,
    otel,
    plain_text,
    qwen_code,
    trace,
)
from evaluators.transcripts import events as structured
from evaluators.transcripts.nesting import without_deep_values
from evaluators.transcripts.reading import NoKnownEvents, UnreadableTranscript

__all__ = ["PARSERS", "UnreadableTranscript", "parse"]

PARSERS: dict[str, Callable[[bytes], Transcript]] = {
    "events": structured.parse,
    "plain_text": plain_text.parse,
    "trace": trace.parse,
    "otel": otel.parse,
    "chat": chat.parse,
    "codex": codex.parse,
    "claude_code": claude_code.parse,
    "opencode": opencode.parse,
    "gemini_cli": gemini_cli.parse,
    "qwen_code": qwen_code.parse,
    "copilot_cli": copilot_cli.parse,
    "mini_swe_agent": mini_swe_agent.parse,
    "atif": atif.parse,
    "inspect": inspect_log.parse,
    "aider": aider.parse,
}


def parse(
    parser: str, raw: bytes, events: bytes | None = None, *, events_are_trace: bool = False
) -> Transcript:
    """Return what an agent's output says, by the reader of this name.

    Structured events beside it are preferred when they hold a tool call, or are a trace; text, answer and
    usage stay those of the output. Values that are nested too deep are cut, an impossible cost is left out. Raises
    `UnreadableTranscript` when the output is not what the reader reads, and when no event is of a known type and the
    output has no tool call either.
    """
    transcript = without_deep_values(_parse_with(parser, raw, events, events_are_trace=events_are_trace))
    return msgspec.structs.replace(transcript, cost_usd=plausible_cost(transcript.cost_usd))


def _parse_with(parser: str, raw: bytes, events: bytes | None, *, events_are_trace: bool) -> Transcript:
    if parser not in PARSERS:
        raise UnreadableTranscript(
            f"There is no transcript reader called '{parser}'. Choose one of {', '.join(PARSERS)}."
        )
    if not events:
        return PARSERS[parser](raw)
    try:
        beside, problems = _beside(events, are_trace=events_are_trace)
    except NoKnownEvents as error:
        main = PARSERS[parser](raw)
        if not structured.holds_call(main):
            # Without them, a gate on the commands would pass for want of any.
            raise
        return msgspec.structs.replace(main, problems=(*main.problems, _unread(error)))
    if beside is None:
        main = PARSERS[parser](raw)
        return msgspec.structs.replace(main, problems=main.problems + problems)
    main = _main(parser, raw)
    return msgspec.structs.replace(
        beside,
        # An own agent's events without a call don't say that there was none.
        source=beside.source if structured.holds_call(beside) else "events",
        text=main.text or beside.text,
        answer=main.answer or beside.answer,
        usage=main.usage or beside.usage,
        usage_by_model=main.usage_by_model if main.usage else beside.usage_by_model,
        cost_usd=main.cost_usd if main.cost_usd is not None else beside.cost_usd,
        problems=beside.problems + main.problems,
    )


def _beside(events: bytes, *, are_trace: bool) -> tuple[Transcript | None, tuple[str, ...]]:
    """Return the structured events where they count, else what was wrong with them. Raises `NoKnownEvents`."""
    try:
        if are_trace:
            return trace.parse(events), ()
        transcript = structured.parse(events)
    except NoKnownEvents:
        raise
    except UnreadableTranscript as error:
        return None, (_unread(error),)
    return (transcript, ()) if structured.holds_call(transcript) else (None, transcript.problems)


def _unread(error: UnreadableTranscript) -> str:
    return f"The structured events could not be read: {error}"


def _main(parser: str, raw: bytes) -> Transcript:
    try:
        return PARSERS[parser](raw)
    except UnreadableTranscript as error:
        # The events suffice; the output stays readable as text.
        return msgspec.structs.replace(plain_text.parse(raw), problems=(str(error),))

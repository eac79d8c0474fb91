"""A trial's calls as a terminal recording, asciicast v2 (https://docs.asciinema.org/manual/asciicast/v2/)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from evaluators.model import Json, Transcript
from evaluators.redaction import redact_patterns
from evaluators.tool_use.calls import Call, pair_calls
from evaluators.tool_use.shell import without_ansi

COLUMNS, ROWS = 100, 24
LONGEST_OUTPUT = 10_000
"""Characters of one output: its beginning and its end."""
_RUNS = 0.5
"""Seconds that a call takes if that is unknown."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters that a terminal would act on; colours are removed before."""


class RecordingStep(Struct, frozen=True):
    """One call of the recording."""

    number: int
    at: float
    """Seconds from the beginning."""
    line: str
    failed: bool
    output: str
    exit_code: int | None = None
    seconds: float = _RUNS


def recording_steps(transcript: Transcript) -> list[RecordingStep]:
    """Return the calls in order, redacted; times are those of the events where they are known."""
    steps: list[RecordingStep] = []
    clock: float = 0.0
    first: float | None = None
    for number, call in enumerate(pair_calls(transcript.events), start=1):
        began, took = call.times()
        if began is not None:
            first = began if first is None else first
            clock = max(clock, began - first)
        seconds = _RUNS if took is None else took
        steps.append(_step(number, round(clock, 3), call, round(seconds, 3)))
        # Seconds between two calls whose times are unknown.
        clock += seconds + 1.0
    return steps


def cast_lines(steps: Sequence[RecordingStep], title: str, timestamp: int | None = None) -> Iterator[str]:
    """Yield the recording's lines, with a marker at each call."""
    header: dict[str, Json] = {"version": 2, "width": COLUMNS, "height": ROWS, "title": title}
    yield json.dumps(header | ({"timestamp": timestamp} if timestamp is not None else {})) + "\n"
    for step in steps:
        mark = " ✗" if step.failed else ""
        yield _event(step.at, "m", f"{step.number}. {step.line[:60]}{mark}")
        yield _event(step.at, "o", f"\x1b[1;32m$\x1b[0m {_type_text(step.line)}\r\n")
        code = (
            f"\x1b[31m[exit {step.exit_code}]\x1b[0m\r\n"
            if step.failed and step.exit_code is not None
            else ""
        )
        output = _type_text(step.output)
        yield _event(step.at + step.seconds, "o", (f"{output}\r\n" if output else "") + code)


def _event(at: float, code: str, data: str) -> str:
    return json.dumps([round(at, 3), code, data], ensure_ascii=False) + "\n"


def _type_text(text: str) -> str:
    return text.replace("\n", "\r\n")


def _step(number: int, at: float, call: Call, seconds: float) -> RecordingStep:
    result, event = call.result, call.event
    code = call.exit_code
    line = event.command or f"{event.name or 'call'} {_text(event.input)}"
    output = _text(result.output if result.output is not None else result.text) if result else ""
    return RecordingStep(
        number, at, " ".join(_plain(line).split()), bool(code), _plain(_shorten(output)), code, seconds
    )


def _text(value: Json) -> str:
    if isinstance(value, Mapping) and {"stdout", "stderr"} & value.keys():
        return "\n".join(filter(None, (_text(value.get(name)) for name in ("stdout", "stderr"))))
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _shorten(text: str) -> str:
    half = LONGEST_OUTPUT // 2
    return (
        text
        if len(text) <= LONGEST_OUTPUT
        else f"{text[:half]}\n… {len(text) - 2 * half} characters …\n{text[-half:]}"
    )


def _plain(text: str) -> str:
    """Return a text without secrets and without what a terminal would act on."""
    return _CONTROLS.sub("", without_ansi(redact_patterns(text)).replace("\r\n", "\n")).rstrip("\n")

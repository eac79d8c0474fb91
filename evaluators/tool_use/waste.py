"""Tokens of the model's turns that did not advance the task.

A turn's tokens, read and written, are divided equally among its calls. A call is waste if a command of the tool in it
failed, if it asks for help that was read before, or if it comes after the task was done: after the last successful
command of a passed trial that had not run before. The turns of the final answer aren't waste.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from msgspec import Struct

from evaluators.model import Command, Score, Transcript

FAILED, HELP, AFTER = "tokens_in_failed_commands", "tokens_in_repeated_help", "tokens_after_done"


class _Turn(Struct):
    start: int
    """Index of its first event."""
    tokens: int
    calls: list[int]
    """Indexes of its calls."""


def waste_scores(transcript: Transcript, commands: Sequence[Command], *, passed: bool) -> tuple[Score, ...]:
    """Return the wasted tokens by cause and in all; nothing if the transcript doesn't have the tokens of each turn.

    When a trial did not pass, the task was never done.
    """
    turns = _turns(transcript)
    if not turns or not commands:
        return ()
    causes = dict(_causes(commands))
    done = _find_done(commands) if passed else None
    wasted = dict.fromkeys((FAILED, HELP, *([AFTER] if done is not None else [])), 0.0)
    for turn in turns:
        for call in turn.calls:
            cause = causes.get(call) or (AFTER if done is not None and call > done else "")
            if cause:
                wasted[cause] += turn.tokens / len(turn.calls)
    scores = tuple(Score("interaction", name, round(value, 1)) for name, value in wasted.items())
    return (*scores, Score("interaction", "wasted_tokens", round(sum(wasted.values()), 1)))


def _turns(transcript: Transcript) -> list[_Turn]:
    turns = [
        _Turn(index, event.usage.input + event.usage.output, [])
        for index, event in enumerate(transcript.events)
        if event.usage is not None
    ]
    starts = [turn.start for turn in turns]
    for index, event in enumerate(transcript.events):
        if event.type == "tool_call":
            place = bisect_right(starts, index) - 1
            if place < 0:
                return []
            turns[place].calls.append(index)
    return turns


def _causes(commands: Sequence[Command]) -> Iterator[tuple[int, str]]:
    """Yield the calls that are waste in themselves; a failure counts before repeated help."""
    asked: set[str] = set()
    failed = {command.event for command in commands if command.failed}
    for command in commands:
        if command.event is None:
            continue
        if command.event in failed:
            yield command.event, FAILED
        elif command.help and command.line in asked:
            yield command.event, HELP
        if command.help:
            asked.add(command.line)


def _find_done(commands: Sequence[Command]) -> int | None:
    """Return the call after which nothing new was done."""
    seen: set[str] = set()
    done: int | None = None
    for command in commands:
        if not (command.help or command.failed or command.line in seen):
            done = command.event
            seen.add(command.line)
    return done

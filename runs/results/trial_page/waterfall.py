"""Lay a trial's steps on one axis of time: the model's turns, its calls, and what it waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from django.utils.safestring import SafeString

from evalhub.lib.numbers import duration
from evalhub.web.waterfall import draw_axis, draw_span, tick_places, tick_step
from evaluators.model import Transcript
from evaluators.tool_use.calls import epoch_seconds
from runs.results.trial_page.steps import DrawnPause, StepPicture, TimelineStep

SHORTEST_PAUSE = 0.1
"""Seconds from which a turn of the model has a row of its own."""
MODEL, MESSAGE, WAITING = "model", "message", "waiting"
PASSED, FAILED, HELP, OTHER = "passed", "failed", "help", "other"
LEGEND = {
    MODEL: "model",
    PASSED: "tool",
    FAILED: "failed calls",
    HELP: "help",
    OTHER: "other calls",
    WAITING: "waiting",
}
"""Kinds of spans in the order of the legend, with their words."""


class TimeSpan(NamedTuple):
    """A part of the axis."""

    kind: str
    start: float
    end: float


class Share(NamedTuple):
    """How long the spans of one kind took."""

    kind: str
    word: str
    seconds: float


@dataclass(frozen=True)
class Waterfall:
    """The axis that all bars share."""

    is_timed: bool = False
    """Whether times were recorded; else the axis counts steps."""
    axis: SafeString = SafeString("")  # noqa: RUF009  # a constant
    shares: Sequence[Share] = ()
    """What the time went to; empty without times."""


def first_time(transcript: Transcript | None) -> float | None:
    """Return the first recorded time of a transcript in seconds since 1970; None if there is none."""
    times = (epoch_seconds(event.timestamp) for event in (transcript.events if transcript else ()))
    return next((time for time in times if time is not None), None)


class _Axis(NamedTuple):
    """The part of the time, or of the steps, that one page shows."""

    start: float
    length: float
    is_timed: bool
    grid: str

    def place(self, value: float) -> float:
        """Return where a value is, from 0 to 1."""
        return (value - self.start) / self.length

    def draw(self) -> SafeString:
        step = tick_step(self.length, whole=not self.is_timed)
        ticks = tick_places(self.start, self.start + self.length, step)
        named = [(self.place(at), _mark(at) if self.is_timed else f"{at:.0f}") for at in ticks]
        return draw_axis(named, self.grid)

    def bar(self, span: TimeSpan, label: str) -> SafeString:
        return draw_span(span.kind, self.place(span.start), self.place(span.end), label, self.grid)


def draw_waterfall(
    steps: Sequence[TimelineStep], start: int, stop: int, origin: float | None
) -> tuple[Waterfall, list[TimelineStep]]:
    """Return the axis of the steps from `start` to `stop`, and these steps with their bars.

    `origin` is the trial's first time. Without one, or without the time of any call, each step takes one place on
    the axis.
    """
    is_timed = origin is not None and any(step.number and step.began is not None for step in steps)
    pairs = list(_timed_spans(steps, origin or 0.0) if is_timed else _places(steps))
    shown = pairs[start:stop]
    spans = _flat(shown)
    low, high = (
        min((each.start for each in spans), default=0.0),
        max((each.end for each in spans), default=0.0),
    )
    axis = _Axis(low, high - low or 1.0, is_timed, f"grid-{start}")
    drawn = [
        replace(step, picture=_picture(pause, span, axis, len(steps)))
        for step, (pause, span) in zip(steps[start:stop], shown, strict=True)
    ]
    return Waterfall(is_timed, axis.draw(), _shares(_flat(pairs)) if is_timed else ()), drawn


def _flat(pairs: Sequence[tuple[TimeSpan | None, TimeSpan | None]]) -> list[TimeSpan]:
    return [span for pair in pairs for span in pair if span is not None]


def _places(steps: Sequence[TimelineStep]) -> Iterator[tuple[None, TimeSpan]]:
    return ((None, TimeSpan(_kind(step), float(at), at + 1.0)) for at, step in enumerate(steps))


def _timed_spans(
    steps: Sequence[TimelineStep], origin: float
) -> Iterator[tuple[TimeSpan | None, TimeSpan | None]]:
    """Yield for each step the model's turn before it and its own span, in seconds from `origin`."""
    past = 0.0
    for step in steps:
        if step.began is None:
            yield None, None
            continue
        began = max(0.0, step.began - origin)
        if step.number:
            ended = began if step.ended is None else max(began, step.ended - origin)
            turn = TimeSpan(MODEL, past, began) if began - past >= SHORTEST_PAUSE else None
            yield turn, TimeSpan(_kind(step), began, ended)
            past = max(past, ended)
        else:
            # A message's time is its end.
            yield None, TimeSpan(_kind(step), min(past, began), began)
            past = max(past, began)


def _kind(step: TimelineStep) -> str:
    if not step.number:
        return WAITING if step.speaker in ("user", "error") else MESSAGE
    if step.failed:
        return FAILED
    return HELP if step.help else PASSED if step.ours else OTHER


def _picture(pause: TimeSpan | None, span: TimeSpan | None, axis: _Axis, steps: int) -> StepPicture:
    if span is None:
        return StepPicture(None)
    label = _took(span) if axis.is_timed else f"step {span.start + 1:.0f} of {steps}"
    turn = DrawnPause(pause.end - pause.start, axis.bar(pause, _took(pause))) if pause else None
    awaited = span.end - span.start if axis.is_timed and span.kind in (MESSAGE, WAITING) else None
    return StepPicture(axis.bar(span, f"{label}, failed" if span.kind == FAILED else label), turn, awaited)


def _took(span: TimeSpan) -> str:
    """Return when a span began and how long it took, in words."""
    return f"from {_mark(span.start)}, {duration(span.end - span.start)}"


def _mark(seconds: float) -> str:
    """Return a place on the axis of time."""
    return f"{seconds:.3g} s" if seconds < 120 else duration(seconds)


def _shares(spans: Sequence[TimeSpan]) -> list[Share]:
    seconds = dict.fromkeys(LEGEND, 0.0)
    for span in spans:
        seconds[MODEL if span.kind == MESSAGE else span.kind] += span.end - span.start
    return [Share(kind, word, seconds[kind]) for kind, word in LEGEND.items() if seconds[kind] > 0]

"""Build a trial's timeline: pages of steps, grouped attempts, links to calls, and the axis of time.

The axis has the model's turns, its calls, and what it waited for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from django.utils.safestring import SafeString

from evalhub.lib.numbers import format_duration
from evalhub.web.waterfall import draw_axis, draw_span, tick_places, tick_step
from evaluators.model import Event, Transcript
from evaluators.tool_use.calls import Call, epoch_seconds, pair_calls
from runs.models import CommandRecord
from runs.results.trial_page.steps import DrawnPause, StepPicture, TimelineStep, find_steps, steps_of

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
    return f"from {_mark(span.start)}, {format_duration(span.end - span.start)}"


def _mark(seconds: float) -> str:
    """Return a place on the axis of time."""
    return f"{seconds:.3g} s" if seconds < 120 else format_duration(seconds)


def _shares(spans: Sequence[TimeSpan]) -> list[Share]:
    seconds = dict.fromkeys(LEGEND, 0.0)
    for span in spans:
        seconds[MODEL if span.kind == MESSAGE else span.kind] += span.end - span.start
    return [Share(kind, word, seconds[kind]) for kind, word in LEGEND.items() if seconds[kind] > 0]


AT_ONCE = 200
"""Steps on one page; the rest is loaded on demand."""


@dataclass(frozen=True)
class StepGroup:
    """Attempts at the same subcommand, or a single step."""

    steps: list[TimelineStep] = field(default_factory=list)

    @property
    def is_attempts(self) -> bool:
        return any(step.retry for step in self.steps)

    @property
    def subcommand(self) -> str:
        """Return the attempted subcommand; empty if unnamed."""
        return self.steps[0].subcommand

    @property
    def number(self) -> str:
        """Return the number of attempts in words."""
        tries = sum(not step.help for step in self.steps)
        return f"{tries} attempt{'s' if tries > 1 else ''}"

    @property
    def caption(self) -> str:
        """Return the attempts' result in words."""
        tries = [step for step in self.steps if not step.help]
        ended = "never succeeded" if tries[-1].failed else f"succeeded at attempt {len(tries)}"
        helped = ", opened help" if any(step.help for step in self.steps) else ""
        return f"{ended}{helped}"


@dataclass(frozen=True)
class Timeline:
    """A part of a trial's steps in groups."""

    groups: list[StepGroup]
    calls: int
    steps: int
    next: int | None
    """First step of the next part; None at the end."""
    every: Sequence[TimelineStep] = ()
    """All steps of the trial."""
    waterfall: Waterfall = field(default_factory=Waterfall)

    @cached_property
    def first_failure(self) -> tuple[int, TimelineStep] | None:
        """Return the first failed call with its index; None if none failed."""
        return next(((at, step) for at, step in enumerate(self.every) if step.failed), None)

    @property
    def first_failed(self) -> int:
        """Return the number of the first failed call; 0 if none failed."""
        return self.first_failure[1].number if self.first_failure else 0

    @property
    def failure_address(self) -> str:
        """Return the link to the first failed call from the trial's page; empty if none failed."""
        return call_address(self.first_failure[0], self.first_failed) if self.first_failure else ""

    def address_of(self, numbers: Collection[int]) -> str:
        """Return the link to the first call with one of these commands of the tool; empty without one."""
        wanted = frozenset(numbers)
        found = (
            call_address(at, step.number)
            for at, step in enumerate(self.every)
            if any(command.n in wanted for command in step.own)
        )
        return next(found, "") if wanted else ""


def build_timeline(
    transcript: Transcript | None, commands: Sequence[CommandRecord], start: int = 0
) -> Timeline:
    """Return the steps from `start` on, from the transcript's events and the tool's commands."""
    steps = list(steps_of(transcript, commands))
    after = start + AT_ONCE
    picture, drawn = draw_waterfall(steps, start, after, first_time(transcript))
    steps[start:after] = drawn
    return Timeline(
        list(_group_steps(drawn)),
        sum(step.number > 0 for step in steps),
        len(steps),
        after if after < len(steps) else None,
        steps,
        picture,
    )


def call_address(at: int, number: int, start: int | None = 0) -> str:
    """Return the link to the call at a step's index, on a page that shows the part from step `start` on.

    `start` is None for a page without a part.
    """
    if start is not None and start <= at < start + AT_ONCE:
        return f"#c{number}"
    return f"?part=commands&from={at // AT_ONCE * AT_ONCE}#c{number}"


@dataclass(frozen=True)
class CallLocation:
    """A call's place in the timeline."""

    call: Call
    address: str
    """Link to the call, relative to its trial's page."""


def find_call_places(events: Sequence[Event]) -> dict[int, CallLocation]:
    """Return each call's place by its event's index; empty if the timeline is built from commands alone."""
    paired = {call.index: call for call in pair_calls(events)}
    steps = enumerate(find_steps(events, paired) if paired else ())
    located = [(at, index) for at, (index, _) in steps if index in paired]
    return {
        index: CallLocation(paired[index], call_address(at, number))
        for number, (at, index) in enumerate(located, 1)
    }


def _group_steps(steps: Sequence[TimelineStep]) -> Iterator[StepGroup]:
    at = 0
    while at < len(steps):
        end = _end_of_attempts(steps, at)
        yield StepGroup(list(steps[at : end + 1]))
        at = end + 1


def _end_of_attempts(steps: Sequence[TimelineStep], at: int) -> int:
    """Return the last step of the attempts that begin here; only calls for help may come between."""
    root = steps[at].root
    end = at
    for index in range(at + 1, len(steps)):
        if root is not None and steps[index].root == root:
            end = index
        elif not steps[index].help:
            break
    return end

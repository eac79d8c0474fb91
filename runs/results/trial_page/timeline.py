"""Build a trial's timeline: pages of steps, grouped attempts, links to calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from evaluators.model import Event, Transcript
from evaluators.tool_use.calls import Call, calls
from runs.models import CommandRecord
from runs.results.trial_page.steps import TimelineStep, find_steps, steps_of
from runs.results.trial_page.waterfall import Waterfall, draw_waterfall, first_time

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
        return address(self.first_failure[0], self.first_failed) if self.first_failure else ""

    def address_of(self, numbers: Collection[int]) -> str:
        """Return the link to the first call with one of these commands of the tool; empty without one."""
        wanted = frozenset(numbers)
        found = (
            address(at, step.number)
            for at, step in enumerate(self.every)
            if any(command.n in wanted for command in step.own)
        )
        return next(found, "") if wanted else ""


def timeline(transcript: Transcript | None, commands: Sequence[CommandRecord], start: int = 0) -> Timeline:
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


def address(at: int, number: int, start: int | None = 0) -> str:
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


def places(events: Sequence[Event]) -> dict[int, CallLocation]:
    """Return each call's place by its event's index; empty if the timeline is built from commands alone."""
    paired = {call.index: call for call in calls(events)}
    steps = enumerate(find_steps(events, paired) if paired else ())
    located = [(at, index) for at, (index, _) in steps if index in paired]
    return {
        index: CallLocation(paired[index], address(at, number))
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

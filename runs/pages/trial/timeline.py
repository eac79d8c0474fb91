"""Build a trial's timeline: pages of steps, grouped attempts, links to calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from evaluators.calls import Call, calls
from evaluators.model import Event, Transcript
from runs.models import CommandRecord
from runs.pages.trial.steps import Step, drawn, steps_of

AT_ONCE = 200
"""Steps drawn on one page; the rest is loaded on demand."""


@dataclass(frozen=True)
class StepGroup:
    """Steps that are attempts at the same subcommand, or one step alone."""

    steps: list[Step] = field(default_factory=list)

    @property
    def is_attempts(self) -> bool:
        return any(step.retry for step in self.steps)

    @property
    def subcommand(self) -> str:
        """What was attempted; empty where it has no name."""
        return self.steps[0].subcommand

    @property
    def number(self) -> str:
        """Say how many attempts there are."""
        tries = sum(not step.help for step in self.steps)
        return f"{tries} attempt{'s' if tries > 1 else ''}"

    @property
    def caption(self) -> str:
        """Say how the attempts went."""
        tries = [step for step in self.steps if not step.help]
        ended = "never succeeded" if tries[-1].failed else f"succeeded at attempt {len(tries)}"
        helped = ", opened help" if any(step.help for step in self.steps) else ""
        return f"{ended}{helped}"


@dataclass(frozen=True)
class Timeline:
    """A part of a trial's steps, in groups."""

    groups: list[StepGroup]
    calls: int
    steps: int
    next: int | None
    """The step that the next part begins with."""
    every: Sequence[Step] = ()
    """All steps, in one list."""

    @property
    def first_failed(self) -> int:
        """The number of the first call that failed; 0 where none did."""
        return next((step.number for step in self.every if step.failed), 0)


def timeline(transcript: Transcript | None, commands: Sequence[CommandRecord], start: int = 0) -> Timeline:
    """Return the steps from `start` on, paired from the transcript's events and the tool's commands."""
    steps = list(steps_of(transcript, commands))
    shown = steps[start : start + AT_ONCE]
    after = start + AT_ONCE
    total = sum(step.number > 0 for step in steps)
    return Timeline(list(_grouped(shown)), total, len(steps), after if after < len(steps) else None, steps)


def address(at: int, number: int, start: int | None = 0) -> str:
    """Return the link to a call at a step, counted from 0, where the page shows the part from the step `start` on.

    None is a page that shows no part.
    """
    if start is not None and start <= at < start + AT_ONCE:
        return f"#c{number}"
    return f"?part=commands&from={at // AT_ONCE * AT_ONCE}#c{number}"


@dataclass(frozen=True)
class CallLocation:
    """Where a call stands in the timeline."""

    call: Call
    address: str
    """Behind that of its trial."""


def places(events: Sequence[Event]) -> dict[int, CallLocation]:
    """Return the place of each call by the index of its event; none where the timeline is drawn from commands alone."""
    paired = {call.index: call for call in calls(events)}
    steps = enumerate(drawn(events, paired) if paired else ())
    found = [(at, index) for at, (index, _) in steps if index in paired]
    return {
        index: CallLocation(paired[index], address(at, number)) for number, (at, index) in enumerate(found, 1)
    }


def _grouped(steps: Sequence[Step]) -> Iterator[StepGroup]:
    at = 0
    while at < len(steps):
        end = _end_of_attempts(steps, at)
        yield StepGroup(list(steps[at : end + 1]))
        at = end + 1


def _end_of_attempts(steps: Sequence[Step], at: int) -> int:
    """Return the last step that belongs to the attempts beginning here; only help may stand between."""
    root = steps[at].root
    end = at
    for index in range(at + 1, len(steps)):
        if root is not None and steps[index].root == root:
            end = index
        elif not steps[index].help:
            break
    return end

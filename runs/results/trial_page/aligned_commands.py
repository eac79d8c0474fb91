"""Align the calls of two trials for their comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from evaluators.tool_use.command_alignment import align, command_key
from runs.results.trial_page.steps import TimelineStep
from runs.results.trial_page.timeline import address


class DoneCommand(NamedTuple):
    """A call in its trial's column."""

    line: str
    exit_code: int | None
    failed: bool
    address: str
    """Link to the call, relative to its trial's page."""
    key: str = ""
    """Subcommand and flags; empty for a call of another program."""
    estimated: bool = False
    """Whether its end is estimated from text."""


class CommandPair(NamedTuple):
    """Two aligned calls; a side is None if its trial has no counterpart."""

    base: DoneCommand | None
    new: DoneCommand | None

    @property
    def is_apart(self) -> bool:
        """Return whether the lines differ."""
        return self.base is None or self.new is None or self.base.line != self.new.line

    @property
    def parts_ways(self) -> bool:
        """Return whether the tool's commands differ in subcommand or flags."""
        keys = [side.key if side else "" for side in self]
        return keys[0] != keys[1]


def done_commands(steps: Sequence[TimelineStep]) -> list[DoneCommand]:
    """Return the calls of a trial: each command of the tool, and the other calls."""
    return list(_done_commands_of(steps))


def _done_commands_of(steps: Sequence[TimelineStep]) -> Iterator[DoneCommand]:
    for at, step in enumerate(steps):
        place = address(at, step.number, None)
        for command in step.own:
            key = command_key(command.line, command.subcommand)
            yield DoneCommand(
                command.line, command.exit_code, command.failed, place, key, command.end == "estimated"
            )
        if step.number and not step.own:
            yield DoneCommand(step.line, step.exit_code, step.failed, place, estimated=step.estimated)


def align_trials(before: Sequence[DoneCommand], after: Sequence[DoneCommand]) -> list[CommandPair]:
    """Return both trials' calls in order, the tool's commands aligned by subcommand and flags.

    Other calls are shown side by side between them; without any command of the tool, they are aligned themselves.
    """
    if not any(each.key for each in (*before, *after)):
        before, after = (
            [each._replace(key=command_key(each.line)) for each in side] for side in (before, after)
        )
    return list(_align(before, after))


def _align(before: Sequence[DoneCommand], after: Sequence[DoneCommand]) -> Iterator[CommandPair]:
    ours = [[at for at, each in enumerate(side) if each.key] for side in (before, after)]
    keys = [[side[at].key for at in own] for side, own in zip((before, after), ours, strict=True)]
    old = new = 0
    for one, other in align(*keys):
        # Other calls come before the next command of the tool on either side, also where one has no counterpart.
        old_end = next((at for at in ours[0] if at >= old), len(before))
        new_end = next((at for at in ours[1] if at >= new), len(after))
        yield from _beside(before[old:old_end], after[new:new_end])
        yield CommandPair(None if one is None else before[old_end], None if other is None else after[new_end])
        old, new = old_end + (one is not None), new_end + (other is not None)
    yield from _beside(before[old:], after[new:])


def _beside(before: Sequence[DoneCommand], after: Sequence[DoneCommand]) -> Iterator[CommandPair]:
    return (CommandPair(*pair) for pair in zip_longest(before, after))

"""Which earlier runs belong to a line: an open alert keeps others out until somebody, or later runs, decide.

joins ◀── no alert ── run ── an alert of the suite or of scenarios ──▶ frozen: this run and all after it wait
                              │ accepted: a new line begins with them
                              │ rejected or not confirmed, or three in a row that don't look worse: they join
                              │ fixed: the line goes on without them
improved twice against the old line ──▶ a new line begins with the second run
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from evaluators.statistics.line import FEWEST_RUNS

ENOUGH_GOOD = 3
"""Runs in a row that don't look worse release a scenario, and the suite.

Of fewer than `FEWEST_RUNS`, one releases the suite: a comparison with one run knows no drift, and would keep a line
young for long.
"""


class AlertDecision(StrEnum):
    """What became of an alert."""

    OPEN = "open"
    ACCEPTED = "accepted"
    """Intended, or it won't be fixed."""
    REJECTED = "rejected"
    """No regression, or not confirmed."""
    FIXED = "fixed"


@dataclass(frozen=True)
class LineRun:
    """An earlier run as a line sees it."""

    key: int
    is_red: bool = False
    """It was worse than its line as a whole."""
    decision: AlertDecision | None = None
    """What became of its own alert; None if it raised none."""
    named: frozenset[str] = frozenset()
    """The scenarios that its own alert names."""
    worse: frozenset[str] = frozenset()
    """Scenarios of earlier alerts that look worse in it, too."""
    fixed: frozenset[str] = frozenset()
    """Scenarios of earlier alerts that its fresh trials showed as fixed."""
    is_improved: bool = False
    finished: float = 0.0
    """When it closed, in seconds."""
    decided: float | None = None
    """When its alert was decided, in seconds; None for an open one."""
    is_other: bool = False
    """Its guidance, model or judge was changed on purpose, so what changed with it isn't the tool's."""


@dataclass
class Members:
    """A line after some runs, oldest first."""

    line: list[int] = field(default_factory=list)
    pending: list[LineRun] = field(default_factory=list)
    """From the first open alert on."""
    held: dict[str, int] = field(default_factory=dict)
    """The scenarios of open alerts, with the number of runs in a row in which they didn't look worse."""
    since_fixed: dict[str, int] = field(default_factory=dict)
    """How many runs scenarios have had since they were fixed or released."""
    decided: int | None = None
    """How many runs there were since the last decision; None without one."""
    improved: int | None = None
    """The run that was the first to read improved, until the next one says whether it is."""

    @property
    def since(self) -> int | None:
        """The run whose alert is undecided; None if the line isn't frozen."""
        return self.pending[0].key if self.pending else None

    @property
    def is_red(self) -> bool:
        """Whether an open alert is about the suite as a whole."""
        return any(run.is_red and run.decision is AlertDecision.OPEN for run in self.pending)

    @property
    def newest(self) -> list[int]:
        """The runs of the line, newest first."""
        return self.line[::-1]

    def decide(self, since: int) -> None:
        """Restart windows after this many runs."""
        self.decided, self.since_fixed = since, {}


def members_after(runs: Sequence[LineRun], begin: Sequence[int] = ()) -> Members:
    """Return the line after these runs, oldest first; `begin` is the line before them."""
    members = Members(list(begin))
    for run in runs:
        _resolve(members, run.finished)
        _take(members, run)
    _resolve(members, float("inf"))
    return members


def _resolve(members: Members, at: float) -> None:
    """Apply the decisions on what is pending that were made until then."""
    while members.pending:
        first = members.pending[0]
        if first.decision in (None, AlertDecision.OPEN) or (first.decided or 0.0) > at:
            return
        # A later open alert keeps its runs.
        rest = next(
            (
                place
                for place, run in enumerate(members.pending)
                if place and run.decision is AlertDecision.OPEN
            ),
            len(members.pending),
        )
        keys = [run.key for run in members.pending[:rest]]
        if first.decision is AlertDecision.ACCEPTED:
            members.line = keys
        elif first.decision is AlertDecision.REJECTED:
            members.line += keys
        members.pending = members.pending[rest:]
        left = {key for run in members.pending if run.decision is AlertDecision.OPEN for key in run.named}
        members.held = {key: calm for key, calm in members.held.items() if key in left}
        members.decide(0)


def _take(members: Members, run: LineRun) -> None:
    members.since_fixed = {key: n + 1 for key, n in members.since_fixed.items()}
    if members.decided is not None:
        members.decided += 1
    if members.pending or (run.decision is not None and (run.is_red or run.named)):
        members.pending.append(run)
        members.improved = None
        _release(members, run)
        return
    if members.improved is not None and not run.is_improved:
        # Nothing improved: the run that read so is one of chance's.
        members.line.append(members.improved)
    if (run.is_red and run.is_other) or (run.is_improved and (run.is_other or members.improved is not None)):
        members.line = [run.key]
    elif run.is_improved and len(members.line) >= FEWEST_RUNS:
        members.improved = run.key
        return
    else:
        members.line.append(run.key)
    members.improved = None


def _release(members: Members, run: LineRun) -> None:
    """Note which scenarios a frozen line still waits for, and let it go on after enough runs that don't look worse."""
    for key in list(members.held):
        calm = 0 if key in run.worse else members.held[key] + 1
        members.held[key] = calm
        if key in run.fixed or calm >= ENOUGH_GOOD:
            del members.held[key]
            members.since_fixed[key] = 0 if key in run.fixed else ENOUGH_GOOD
    if run.decision is not None:
        members.held |= dict.fromkeys(run.named, 0)
    is_young = len(members.line) < FEWEST_RUNS and not any(each.named for each in members.pending)
    enough = 1 if is_young else ENOUGH_GOOD
    if members.held or len(members.pending) <= enough:
        return
    if not any(each.is_red for each in members.pending[-enough:]):
        members.line += [each.key for each in members.pending]
        members.pending = []
        members.decide(enough)

"""Which earlier runs belong to a line: a regression keeps others out until somebody, or three good runs, decide.

joins ◀── not regressed ── run ── regressed ──▶ frozen: this run and all after it wait
                                                  │ accepted: a new line begins with them
                                                  │ rejected, or three in a row not regressed: they join
                                                  │ fixed: the line goes on without them
A regression after a change on purpose freezes the line where somebody is asked about it, else a new line begins with it.
improved twice against the old line ──▶ a new line begins with the second run
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from evaluators.statistics.line import FEWEST_RUNS, MOST_RUNS

ENOUGH_GOOD = 3
"""Runs in a row that aren't regressed end an undecided regression.

Of fewer than `FEWEST_RUNS`, one ends it: a comparison with one run knows no drift, and would keep a line young for long.
"""


class AlertDecision(StrEnum):
    """What became of a regression."""

    OPEN = "open"
    ACCEPTED = "accepted"
    """Intended, or it won't be fixed."""
    REJECTED = "rejected"
    """No regression, or its confirmation failed."""
    FIXED = "fixed"


@dataclass(frozen=True)
class LineRun:
    """An earlier run as a line sees it."""

    key: int
    verdict: str = ""
    """A `ChangeVerdict`; empty without one."""
    decision: AlertDecision | None = None
    """What became of its own alert; None if it raised none."""
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
    """From the undecided regression on."""
    improved: int | None = None
    """The run that was the first to read improved, until the next one says whether it is."""

    @property
    def since(self) -> int | None:
        """The run whose regression is undecided; None if the line isn't frozen."""
        return self.pending[0].key if self.pending else None

    @property
    def newest(self) -> list[int]:
        """The runs that a new one is compared with, newest first."""
        return self.line[::-1][:MOST_RUNS]


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
        # A later regression of its own that is undecided keeps its runs.
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


def _take(members: Members, run: LineRun) -> None:
    regressed, improved = run.verdict == "regressed", run.verdict == "improved"
    if members.pending:
        members.pending.append(run)
        enough = ENOUGH_GOOD if len(members.line) >= FEWEST_RUNS else 1
        if not any(each.verdict == "regressed" for each in members.pending[-enough:]):
            members.line += [each.key for each in members.pending]
            members.pending = []
        return
    if members.improved is not None and not improved:
        # Nothing improved: the run that read so is one of chance's.
        members.line.append(members.improved)
    if regressed and run.is_other and run.decision is None:
        members.line = [run.key]
    elif regressed:
        members.pending = [run]
    elif improved and (run.is_other or members.improved is not None):
        members.line = [run.key]
    elif improved and len(members.line) >= FEWEST_RUNS:
        members.improved = run.key
        return
    else:
        members.line.append(run.key)
    members.improved = None

"""Decide which scenarios of a run are run again, how often, and what their fresh trials say.

The first trials only choose: of many scenarios, some fall by chance. The fresh trials alone decide, against the same
old trials, so that a scenario is named falsely once in ten months of nights (`tests/evaluators/statistics/simulated_nights.py`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import comb
from typing import Any, NamedTuple

import msgspec

from evalhub.lib.value import Value

BATCH = 3
"""Scenarios that are run again at a time; the next ones only while all of a batch were named."""
FEWEST, MOST = 6, 12
"""Fresh trials of a scenario."""
IN_TURN = 6
"""Fresh trials of a scenario on each of two arms that run in turn."""
LEAST_FALL = 0.25
"""By how much a scenario's pass rate must have fallen to be run again, and to be named."""
CHOSEN, CHOSEN_BY_ONE_TRIAL = 0.05, 0.12
"""The largest one-sided p with which a scenario is run again."""
ENOUGH_OLD = 15
"""Old trials from which on `STRICT` decides."""
STRICT, LOOSE = 0.001, 0.01
"""The level at which a scenario of a batch of one is named."""
FIXED = 0.01
"""The level at which fresh trials beat those since a scenario was named."""
_BROKEN = 0.02
"""The pass rate of a scenario that broke."""
_TOLERANCE = 1e-9


class Passes(NamedTuple):
    """How many of a scenario's trials passed."""

    passed: int
    trials: int

    @property
    def rate(self) -> float:
        """The share that passed, 0 to 1. Requires a trial."""
        return self.passed / self.trials

    def plus(self, passed: int, trials: int) -> Passes:
        """Return them with further trials."""
        return Passes(self.passed + passed, self.trials + trials)


class RetestOutcome(StrEnum):
    """What fresh trials say of a scenario."""

    NAMED = "named"
    PASSES_AGAIN = "passes_again"
    NOT_DECIDED = "not_decided"
    TOO_FEW = "too_few_earlier_trials"
    """It got no fresh trials, because not even `MOST` failures would name it."""
    FIXED = "fixed"
    """A scenario that an open alert names passes again."""


NONE = Passes(0, 0)
ERRORS = "Trials hit errors."
"""Why fewer fresh trials were decided than planned, where nothing stopped them."""


class RetestKind(StrEnum):
    """Why a scenario got fresh trials."""

    LINE = "line"
    """It looked worse than the run's reference."""
    IN_TURN = "in_turn"
    """It looked worse than in the first arm of the launch, where it ran again too."""
    FIX = "fix"
    """An open alert names it, and it passes again."""


@dataclass(frozen=True)
class Retest(Value):
    """A scenario's fresh trials in a run. They alone decide; its first ones only chose."""

    key: str
    kind: RetestKind
    batch: int
    """From 1, in the order in which they were queued; 0 of a fix."""
    first: Passes
    """Its first trials in the run."""
    old: Passes
    """What its fresh trials are compared with."""
    planned: int
    """Fresh trials; 0 if no number of them could decide."""
    level: float
    """The largest p that names it, or shows it as fixed."""
    fresh: Passes = NONE
    p: float | None = None
    """The one-sided p of the fresh trials; None before they ended."""
    outcome: RetestOutcome | None = None
    """None before they ended."""
    replaced: int = 0
    """Fresh trials that ended as errors and ran again."""
    stopped: str = ""
    """Why fewer ran than planned, in a sentence; empty if all did."""

    def to_json(self) -> dict[str, Any]:
        """Return it as stored, and for REST and the command line."""
        # Through JSON, so that it equals what is read back.
        stored: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return stored


class Planned(NamedTuple):
    """A scenario of a batch."""

    key: str
    trials: int
    """Fresh trials; 0 where `MOST` can't decide."""
    level: float
    """The largest p that names it."""


@lru_cache(maxsize=4096)
def lower_p(new: Passes, old: Passes) -> float:
    """Return the one-sided p of a lower pass rate than the old one (Fisher 1935)."""
    passed, trials = new.passed + old.passed, new.trials + old.trials
    ways = range(max(0, passed - old.trials), new.passed + 1)
    return sum(comb(new.trials, k) * comb(old.trials, passed - k) for k in ways) / comb(trials, passed)


def has_fallen(new: Passes, old: Passes) -> bool:
    """Return whether a scenario looks worse: by `LEAST_FALL` and the level that chooses."""
    if not new.trials or not old.trials or old.rate - new.rate < LEAST_FALL - _TOLERANCE:
        return False
    return lower_p(new, old) <= (CHOSEN if new.trials > 1 else CHOSEN_BY_ONE_TRIAL) + _TOLERANCE


def choose_fallen(new: Mapping[str, Passes], old: Mapping[str, Passes], seed: int) -> list[str]:
    """Return the scenarios to run again, smallest p first, ties by a shuffle that is the same for a seed."""
    fallen = [key for key in sorted(new) if key in old and has_fallen(new[key], old[key])]
    random.Random(seed).shuffle(fallen)  # noqa: S311 (no secret)
    return sorted(fallen, key=lambda key: lower_p(new[key], old[key]))


def plan_batch(keys: Sequence[str], old: Mapping[str, Passes], left: int, *, is_first: bool) -> list[Planned]:
    """Return the next scenarios with their fresh trials; those that can't be decided have none.

    `left` is how many fresh trials the run may still have: only a first batch may exceed it.
    """
    batch = keys[:BATCH]
    planned = []
    for key in batch:
        level = (STRICT if old[key].trials >= ENOUGH_OLD else LOOSE) / len(batch)
        trials = _fewest(old[key], level)
        if not is_first and trials > left:
            break
        left -= trials
        planned.append(Planned(key, trials, level))
    return planned


def _fewest(old: Passes, level: float) -> int:
    """Return the fewest fresh trials of which none passing names a scenario; 0 where `MOST` don't."""
    enough = (n for n in range(FEWEST, MOST + 1) if lower_p(Passes(0, n), old) < level)
    return next(enough, 0) if old.rate > LEAST_FALL else 0


def most_retested(first: int) -> int:
    """Return the most fresh trials of a run with this many first ones: as many, but a whole batch."""
    return max(BATCH * MOST, first)


def decide_retest(fresh: Passes, old: Passes, level: float) -> RetestOutcome:
    """Return what fresh trials say against the old ones."""
    if fresh.trials and fresh.passed == fresh.trials:
        return RetestOutcome.PASSES_AGAIN
    if not fresh.trials or not old.trials or old.rate - fresh.rate < LEAST_FALL - _TOLERANCE:
        return RetestOutcome.NOT_DECIDED
    return RetestOutcome.NAMED if lower_p(fresh, old) < level else RetestOutcome.NOT_DECIDED


def share_named(old: Passes, trials: int) -> float:
    """Return the share of cases in which a run of this many trials names a scenario that breaks.

    It then passes in one of fifty trials; `old` are its trials in the line.
    """
    level = STRICT if old.trials >= ENOUGH_OLD else LOOSE
    fresh = _fewest(old, level) if old.trials else 0
    if not fresh:
        return 0.0
    chosen = sum(_chance(k, trials, _BROKEN) for k in range(trials + 1) if has_fallen(Passes(k, trials), old))
    named = sum(
        _chance(k, fresh, _BROKEN)
        for k in range(fresh + 1)
        if decide_retest(Passes(k, fresh), old, level) is RetestOutcome.NAMED
    )
    return chosen * named


def _chance(passed: int, trials: int, rate: float) -> float:
    return comb(trials, passed) * rate**passed * (1 - rate) ** (trials - passed)


def plan_in_turn(keys: Sequence[str]) -> list[Planned]:
    """Return the next scenarios of two arms, each with its fresh trials on either arm."""
    batch = keys[:BATCH]
    return [Planned(key, IN_TURN, LOOSE / len(batch)) for key in batch]


def is_fixed(fresh: Passes, since: Passes) -> bool:
    """Return whether fresh trials beat a scenario's trials since it was named, those that named it included."""
    if not fresh.trials or not since.trials:
        return False
    return lower_p(since, fresh) < FIXED


def describe_retest(retest: Retest) -> str:
    """Return what a scenario's fresh trials show, without a full stop; while they run, that they do."""
    said = _say_outcome(retest)
    if not retest.stopped:
        return said
    ran = retest.fresh.trials
    if retest.kind is RetestKind.IN_TURN:
        ran = min(ran, retest.old.trials)
    ended = "the others hit errors" if retest.stopped == ERRORS else "limit reached"
    return f"{said}; {ran} of {retest.planned}, {ended}"


def _say_outcome(retest: Retest) -> str:
    passed, trials = retest.fresh
    failed = f"{trials - passed} of {trials}"
    if retest.outcome is None:
        return f"runs again, {retest.planned} fresh trials"
    if retest.outcome is RetestOutcome.TOO_FEW:
        return "too few earlier trials"
    if retest.outcome is RetestOutcome.FIXED:
        return f"fixed, {passed} of {trials} pass"
    if retest.kind is RetestKind.FIX:
        return f"{passed} of {trials} pass, not yet fixed"
    if retest.outcome is RetestOutcome.PASSES_AGAIN:
        return f"passes again, {passed} of {trials}"
    if retest.outcome is RetestOutcome.NAMED:
        beside = f"; {retest.old.passed} of {retest.old.trials} pass with the first guidance"
        return f"failed tonight, and {failed} again{beside if retest.kind is RetestKind.IN_TURN else ''}"
    return f"{failed} failed, not decided"


def describe_reference(retest: Retest) -> str:
    """Return that a scenario has few earlier trials, so that less is found; empty if it has enough."""
    old = retest.old
    if retest.kind is not RetestKind.LINE or old.trials >= ENOUGH_OLD:
        return ""
    trials = "1 earlier trial" if old.trials == 1 else f"{old.trials} earlier trials"
    return f"Compared with {trials}; from {ENOUGH_OLD} on, more is found."

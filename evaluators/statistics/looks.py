"""Look at a comparison several times while its trials run, and stop when the answer is known.

Group-sequential: each look spends a part of the error that one test has (Lan and DeMets 1983), early ones little
of it (the function of the O'Brien-Fleming kind). Looks test the pass rate and the table of scenarios, each with a
budget of its own, which is its part of the false alarms of a comparison (`Shares`). Stopping without a change is
never binding: the levels are the same whether or not it is followed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import ceil, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from evalhub.lib.value import Value
from evaluators.statistics.measure_change import Sample, arms_of
from evaluators.statistics.significance import (
    Arms,
    adjust_holm,
    benjamini_hochberg,
    boschloo_p,
    within_scenario_p,
)

ALPHA = 0.05
"""The share of false alarms of a comparison as a whole."""


class Shares(NamedTuple):
    """The levels of a comparison's tests, which together are at most `ALPHA`."""

    pass_rate: float
    """Of the suite's pass rate."""
    scenarios: float
    """Of the table of scenarios (Benjamini and Hochberg)."""
    others: float
    """Of the other headline measures (Holm), which have the pass rate's level as well once that is significant (Bretz
    et al. 2009)."""


ONE_RUN = Shares(pass_rate=0.03, scenarios=0.05, others=0.005)
"""Against one run the table's exact test raises at most 1 % at its level (`tests/evaluators/statistics/simulated_runs.py`)."""
AGAINST_LINE = Shares(pass_rate=0.03, scenarios=0.01, others=0.02)
"""Against a line (`evaluators.statistics.line`); its scenarios are tested in windows, and by fresh trials beside these."""
PASS_RATE_SHARE, SCENARIOS_SHARE, _ = ONE_RUN


class Levels(NamedTuple):
    """The levels of a comparison's two questions; lower while it is looked at before its end (`evaluators.statistics.looks`)."""

    pass_rate: float = PASS_RATE_SHARE
    scenarios: float = SCENARIOS_SHARE


ONE_LOOK = Levels()
"""The levels of a comparison that nobody looked at before."""


def share_error(
    ps: Sequence[float | None], shares: Shares, *, has_passes: bool
) -> list[tuple[float | None, float]]:
    """Return each headline measure's p, corrected so that 0.05 decides, and its part of the error.

    `has_passes` says whether the first p is that of the suite's pass rate.
    """
    first = ps[0] if has_passes else None
    others = ps[1:] if has_passes else ps
    is_passed_on = first is not None and first < shares.pass_rate
    share = shares.others + (shares.pass_rate if is_passed_on else 0.0)
    tested = [p for p in others if p is not None]
    corrected = iter(adjust_holm(tested))
    parts: list[tuple[float | None, float]] = []
    if first is not None:
        parts.append((scale_p(first, shares.pass_rate), shares.pass_rate))
    part = share / max(1, len(tested))
    return parts + [(None if p is None else scale_p(next(corrected), share), part) for p in others]


def scale_p(p: float, share: float) -> float:
    """Return a p so that 0.05 decides where `share` does."""
    return min(1.0, p * ALPHA / share)


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_LOOKS = 4
"""The most looks of a plan."""
LATER_PASS_RATE, LATER_SCENARIOS = 0.01, 0.02
"""What all looks after one that was not planned spend together, because that one had spent its whole level."""
_LEAST = 1e-12
"""The level of a look that has no error to spend: nothing is found at it."""
_NORMAL = NormalDist()


class LookDecision(StrEnum):
    """What follows a look."""

    GO_ON = "go_on"
    DECIDED = "decided"
    """The pass rate or a scenario changed."""
    FUTILE = "futile"
    """More trials up to the limit are unlikely to find a change."""
    LIMIT = "limit"
    """The limit of trials or of cost is reached."""


class ScenarioState(NamedTuple):
    """One row of the table of scenarios at a look."""

    p: float
    """Before any correction."""
    is_large: bool
    """Whether its change is at least the smallest effect of interest."""
    then: float
    """p-value at the trial limit if pass rates don't change; 1 if none remain."""


@dataclass(frozen=True)
class LookState:
    """The two questions of a look, whatever they compare with."""

    p: float
    """Of the pass rate."""
    trend: float
    """The same to judge what more trials may show: 1 without a difference."""
    rest: float
    """`trend` without the scenarios that may change by themselves."""
    is_large: bool
    """Whether the pass rate's change is at least the smallest effect of interest."""
    table: Mapping[str, ScenarioState]
    fraction: float
    """The pass rate's information as a share of that at the limit, above 0 to 1."""
    table_fraction: float
    """The same of the scenario with the most."""


@dataclass(frozen=True)
class InterimLook(Value):
    """One look, and what follows."""

    p: float
    level: float
    """The pass rate's p has to be lower than this."""
    table_p: float
    """The lowest p of a scenario after its correction for all of them, 1 without any."""
    table_level: float
    decision: LookDecision
    """go_on, decided, futile or limit."""
    undecided: tuple[str, ...] = ()
    """The keys of the scenarios that get trials next; none unless it goes on."""

    @property
    def levels(self) -> Levels:
        """The levels for the verdict after this look."""
        return Levels(self.level, self.table_level)


@dataclass(frozen=True, kw_only=True)
class StoredLook(InterimLook):
    """A look as `Run.looks` keeps it."""

    against: int
    """Key of the run that it compared with."""
    trials: tuple[int, int]
    """Trials so far that count, before and after."""
    most: tuple[int, int]
    """The most trials of one scenario among them."""
    scenarios: int
    """Scenarios that both sides have results of."""
    fractions: tuple[float, float]
    """The information of the pass rate and of the table as shares of those at the limit."""
    information: tuple[float, float]
    """The same in units of one trial's variance."""
    reason: str = ""
    """Why no trial followed although the limit of trials wasn't reached; else empty."""

    def to_json(self) -> dict[str, Any]:
        """Return the look for `Run.looks`."""
        stored: dict[str, Any] = msgspec.to_builtins(self)
        return stored


def spent_error(fraction: float, alpha: float) -> float:
    """Return the part of an error that is spent at a share of the information (Lan and DeMets 1983).

    Two-sided: each side spends half as the O'Brien-Fleming boundary would.
    """
    if fraction <= 0.0:
        return 0.0
    quantile = _NORMAL.inv_cdf(1 - alpha / 4)
    return min(alpha, 4 * (1 - _NORMAL.cdf(quantile / sqrt(min(1.0, fraction)))))


@lru_cache(maxsize=4096)
def plan_levels(information: tuple[float, ...], errors: tuple[float, ...]) -> tuple[float, ...]:
    """Return the two-sided level of each look, so that all looks up to it raise no more than its error.

    Takes the information at each look, growing, on any scale, and the error spent up to it. The joint distribution of
    normal statistics is integrated step by step (Armitage, McPherson and Rowe 1969).
    """
    import numpy as np
    from scipy.special import ndtr

    levels: list[float] = []
    points = density = None
    before, used = 0.0, 0.0
    for now, error in zip(information, errors, strict=True):
        look_error, step = max(0.0, error - used), now - before
        if look_error <= 0.0 or step <= 0.0:
            # A look without new information or error finds nothing.
            levels.append(_LEAST)
            continue
        if points is None or density is None:
            bound = -_NORMAL.inv_cdf(look_error / 2) * sqrt(now)
        else:
            bound = _find_bound(points, density, sqrt(step), look_error, sqrt(now))
        levels.append(max(_LEAST, 2 * float(ndtr(-bound / sqrt(now)))))
        # Points of the numerical integration: levels are exact to 1 % of themselves.
        grid = np.linspace(-bound, bound, 201)
        if points is None or density is None:
            following = np.exp(-(grid**2) / (2 * now)) / sqrt(2 * np.pi * now)
        else:
            apart = (grid[:, None] - points[None, :]) / sqrt(step)
            width = points[1] - points[0]
            following = (np.exp(-(apart**2) / 2) * density[None, :]).sum(axis=1) * width
            following /= sqrt(2 * np.pi * step)
        points, density, before, used = grid, following, now, error
    return tuple(levels)


def _find_bound(
    points: NDArray[np.float64], density: NDArray[np.float64], step: float, error: float, scale: float
) -> float:
    """Return the bound that the next sum crosses, either way, with a probability of `error`."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    width = points[1] - points[0]

    def excess(bound: float) -> float:
        beyond = ndtr((points - bound) / step) + ndtr((-points - bound) / step)
        return float((beyond * density).sum() * width) - error

    if excess(0.0) <= 0.0:
        return 0.0
    return float(brentq(excess, 0.0, 12 * scale, xtol=1e-6 * scale))


def planned_levels(fractions: Sequence[tuple[float, float]]) -> Levels:
    """Return the levels of the last of some looks, from each look's share of the information of both questions.

    That of the table is what it has spent by then, because its exact tests raise at most a fifth of their level.
    """
    passes, tables = (_growing(each) for each in zip(*fractions, strict=True))
    level = plan_levels(passes, tuple(spent_error(each, PASS_RATE_SHARE) for each in passes))[-1]
    return Levels(level, max(_LEAST, spent_error(tables[-1], SCENARIOS_SHARE)))


def unplanned_levels(information: Sequence[tuple[float, float]]) -> Levels:
    """Return the levels of the last look where the first was planned as the only one.

    Takes each look's information of both questions. The first has spent its whole level. The n-th look has spent
    1 - 1/n of what later looks have.
    """
    if len(information) < 2:
        return ONE_LOOK
    passes, tables = (_growing(each) for each in zip(*information, strict=True))
    left = [1 - 1 / n for n in range(1, len(passes) + 1)]
    return Levels(
        plan_levels(passes, tuple(PASS_RATE_SHARE + LATER_PASS_RATE * each for each in left))[-1],
        plan_levels(tables, tuple(SCENARIOS_SHARE + LATER_SCENARIOS * each for each in left))[-1],
    )


def _growing(values: Sequence[float]) -> tuple[float, ...]:
    """Return values rounded, so that equal looks give equal levels, none below the one before."""
    highest, rounded = 0.0, []
    for value in values:
        highest = max(highest, round(value, 4))
        rounded.append(highest)
    return tuple(rounded)


def decide_look(state: LookState, levels: Levels, *, is_last: bool) -> InterimLook:
    """Return what follows a look. `is_last` says that no trial may follow."""
    corrected = benjamini_hochberg([scenario.p for scenario in state.table.values()])
    rows = list(zip(state.table.items(), corrected, strict=True))
    is_changed = (state.p < levels.pass_rate and state.is_large) or any(
        p < levels.scenarios and scenario.is_large for (_, scenario), p in rows
    )
    undecided: tuple[str, ...] = ()
    if is_changed:
        decision = LookDecision.DECIDED
    elif is_last:
        decision = LookDecision.LIMIT
    else:
        undecided = _find_undecided(state)
        decision = LookDecision.GO_ON if undecided else LookDecision.FUTILE
    return InterimLook(
        state.p, levels.pass_rate, min(corrected, default=1.0), levels.scenarios, decision, undecided
    )


def _find_undecided(state: LookState) -> tuple[str, ...]:
    """Return the scenarios that get trials next.

    First those that may change by themselves. The others follow while the pass rate may change without those, or while
    there are none of them and too little is known to call a change unlikely.
    """
    alone = may_change(state.table)
    if alone:
        is_rest_open = not is_unlikely(state.rest, state.fraction)
    else:
        # The share of the information below which nothing is called futile.
        is_rest_open = state.fraction < 0.5 - 1e-9 or not is_unlikely(state.trend, state.fraction)
    return tuple(state.table) if is_rest_open else alone


def may_change(table: Mapping[str, ScenarioState]) -> tuple[str, ...]:
    """Return the scenarios that the table may name at the limit if their pass rates stay about as they are."""
    # How much larger than the table's level a scenario's p at the limit may be, because its rates may be
    # further apart.
    share = 3 * SCENARIOS_SHARE / max(1, len(table))
    return tuple(key for key, each in table.items() if each.then < share)


def is_unlikely(p: float, fraction: float) -> bool:
    """Return whether a change of the pass rate is unlikely at the limit.

    The bound on z grows from 0.5 at half of the information to 0.9 at three quarters.
    """
    return -_NORMAL.inv_cdf(max(p, 1e-300) / 2) < max(0.1, 1.6 * fraction - 0.3)


def look_sizes(first: int, most: int) -> tuple[int, ...]:
    """Return the trials of each scenario at each look, from the first look's up to the most, evenly."""
    if first >= most:
        return (most,)
    looks = min(MOST_LOOKS, most - first + 1)
    return tuple(first + ceil((most - first) * n / (looks - 1)) for n in range(looks))


def first_size(most: int) -> int:
    """Return the trials of each scenario at the first look where nothing else is asked for."""
    return ceil(most / MOST_LOOKS)


def state_of(
    before: Mapping[str, Sample], after: Mapping[str, Sample], smallest: float, most: int, *, is_paired: bool
) -> LookState | None:
    """Return the state of a comparison of two sides' passes; None without a scenario that both have.

    `smallest` is the smallest effect of interest, 0 to 1, `most` the limit of trials of each scenario, of both sides where they are run together (`is_paired`).
    """
    arms = {key: arms_of(before[key], after[key]) for key in after if key in before}
    if not arms:
        return None
    limits = {key: _at_limit(pair, most, is_paired=is_paired) for key, pair in arms.items()}
    effect = sum(pair.difference for pair in arms.values()) / len(arms)
    listed = list(arms.values())
    table = {
        key: ScenarioState(boschloo_p(pair), _is_large(pair.difference, smallest), _then(pair, limits[key]))
        for key, pair in arms.items()
    }
    final_information = [compute_information([limits[key]]) for key in arms]
    current_information = [compute_information([pair]) for pair in listed]
    alone = may_change(table)
    return LookState(
        _p(listed),
        _trend(listed),
        _trend([pair for key, pair in arms.items() if key not in alone]),
        _is_large(effect, smallest),
        table,
        min(1.0, compute_information(listed) / compute_information(list(limits.values()))),
        min(1.0, max(now / then for now, then in zip(current_information, final_information, strict=True))),
    )


def _p(arms: Sequence[Arms]) -> float:
    return boschloo_p(arms[0]) if len(arms) == 1 else within_scenario_p(arms, mid=True)


def _trend(arms: Sequence[Arms]) -> float:
    # The mid-p of results that don't vary is 0.5.
    return _p(arms) if abs(sum(each.difference for each in arms)) > 1e-12 else 1.0


def compute_information(arms: Sequence[Arms]) -> float:
    """Return the information about the mean difference, in units of one trial's variance."""
    return len(arms) ** 2 / sum(1 / each.trials_before + 1 / each.trials_after for each in arms)


def _is_large(effect: float, smallest: float) -> bool:
    return abs(effect) >= smallest - 1e-12


def _at_limit(arms: Arms, most: int, *, is_paired: bool) -> Arms:
    """Return a scenario's passes at the limit of trials if its pass rates stay as they are."""
    old = max(arms.trials_before, most) if is_paired else arms.trials_before
    new = max(arms.trials_after, most)
    return Arms(
        round(arms.before / arms.trials_before * old), old, round(arms.after / arms.trials_after * new), new
    )


def _then(now: Arms, limit: Arms) -> float:
    is_over = (now.trials_before, now.trials_after) == (limit.trials_before, limit.trials_after)
    # Boschloo's takes a fifth of a second for a hundred trials, and this one decides nothing.
    return 1.0 if is_over else within_scenario_p([limit], mid=True)

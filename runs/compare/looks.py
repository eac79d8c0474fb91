"""Read what a look at an open run compares, and the levels that looks leave for a comparison."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db.models import Count, Q

from evaluators.statistics.error_shares import ONE_LOOK, Levels
from evaluators.statistics.looks import (
    InterimLook,
    LookState,
    StoredLook,
    information,
    state_of,
    unplanned_levels,
)
from evaluators.statistics.measure_change import Sample
from evaluators.statistics.significance import Arms
from runs.models import Run, RunMeasure, Trial
from runs.models.trial import TrialState
from runs.results.comparability import outcomes_changed_since

LEAST_LEVEL = 1e-12
Passes = dict[str, Sample]
"""Passes by scenario key."""


def look_as_stored(look: InterimLook, sides: ComparedSides, *, reason: str = "") -> StoredLook:
    """Return a look as it is stored."""
    return StoredLook(
        **vars(look),
        against=sides.against,
        trials=sides.trials,
        most=sides.most,
        scenarios=len(sides.state.table),
        fractions=sides.fractions,
        information=sides.information,
        reason=reason,
    )


def looks_of(run: Run) -> list[StoredLook]:
    """Return a run's looks. No query."""
    return msgspec.convert(run.looks, list[StoredLook])


_SHOWN = ("against", "trials", "p", "level", "table_p", "table_level", "decision", "undecided", "reason")


def look_json(look: StoredLook) -> dict[str, Any]:
    """Return a look for REST and the command line."""
    return {"information": look.fractions[0], **{name: getattr(look, name) for name in _SHOWN}}


@dataclass(frozen=True)
class ComparedSides:
    """What a look compares."""

    against: int
    trials: tuple[int, int]
    most: tuple[int, int]
    state: LookState
    information: tuple[float, float]

    @property
    def fractions(self) -> tuple[float, float]:
        """The information of both questions as shares of those at the limit."""
        return self.state.fraction, self.state.table_fraction


def read_state(
    before: Sequence[Run], after: Sequence[Run], smallest: float, most: int, *, is_paired: bool
) -> ComparedSides | None:
    """Return what a look compares; None if no scenario has results on both sides. Up to seven queries.

    Takes each side's runs, the compared one first. Trials of open runs count as far as they have ended.
    """
    changed = outcomes_changed_since(before[0], [after[0]])[0]
    old, new = (passes_of_side(runs) for runs in (before, after))
    new = {key: sample for key, sample in new.items() if key in old and key not in changed}
    state = state_of(old, new, smallest, most, is_paired=is_paired)
    if state is None:
        return None
    pairs = [(old[key].n, new[key].n) for key in new]
    return ComparedSides(
        before[0].pk,
        (sum(each for each, _ in pairs), sum(each for _, each in pairs)),
        (max(each for each, _ in pairs), max(each for _, each in pairs)),
        state,
        information_of(pairs),
    )


def passes_of_side(runs: Sequence[Run]) -> Passes:
    """Return the passes of runs together by scenario key. At most two queries."""
    counted: dict[str, tuple[int, int]] = {}
    ended = [run.pk for run in runs if not run.is_open]
    rows = [*_stored_passes(ended), *_ended_passes([run.pk for run in runs if run.is_open])]
    for key, trials, passed in rows:
        so_far = counted.get(key, (0, 0))
        counted[key] = (so_far[0] + trials, so_far[1] + passed)
    return {key: Sample(trials, passed / trials) for key, (trials, passed) in counted.items()}


def _stored_passes(runs: Collection[int]) -> list[tuple[str, int, int]]:
    if not runs:
        return []
    rows = _pass_rollups(runs).values_list("scenario__key", "n", "mean")
    return [(key, n, round(n * mean)) for key, n, mean in rows]


def _pass_rollups(runs: Collection[int]) -> Any:
    rollups = RunMeasure.objects.filter(run__in=runs, measure__layer="trial", measure__name="pass", n__gt=0)
    return rollups.exclude(scenario=None)


def _ended_passes(runs: Collection[int]) -> list[tuple[str, int, int]]:
    if not runs:
        return []
    ended = Trial.objects.filter(
        run__in=runs, is_retest=False, state=TrialState.FINISHED, outcome__in=("pass", "fail")
    )
    counts = ended.order_by().values_list("scenario__key")
    return list(counts.annotate(n=Count("pk"), passed=Count("pk", filter=Q(outcome="pass"))))


def information_of(trials: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return the information about the pass rate and about the scenario with the most, from each scenario's trials."""
    arms = [Arms(0, old, 0, new) for old, new in trials]
    return information(arms), max(information([each]) for each in arms)


def levels_between(before: Run, after: Run) -> Levels:
    """Return the levels of a comparison of two runs, lower where interim looks compared them. No query."""
    for run, other in ((after, before), (before, after)):
        if run.looks and other.pk in (run.looks[-1]["against"], run.options.get("looks_with")):
            last = run.looks[-1]
            # Archives of other evalhubs may name any number.
            return Levels(
                *(min(1.0, max(LEAST_LEVEL, each)) for each in (last["level"], last["table_level"]))
            )
    return ONE_LOOK


def levels_of_pools(before: Sequence[int], after: Sequence[int]) -> Levels:
    """Return the levels of a comparison to which further trials were added, each time after a look. Two queries.

    Takes the keys of each side's runs, the compared one first.
    """
    return unplanned_levels(information_so_far(before, after))


def information_so_far(before: Sequence[int], after: Sequence[int]) -> list[tuple[float, float]]:
    """Return the information at each look at two runs with further trials, the first without any. Two queries.

    Takes the keys of each side's closed runs, the compared one first. Those of one launch are one look, or as many as
    its plan had.
    """
    sides = (before, after)
    counts = _trials_by_run([key for side in sides for key in side])
    so_far = [dict(counts.get(side[0], {})) for side in sides]
    at_looks = [_information(so_far)]
    further = {key: at for at, side in enumerate(sides) for key in side[1:]}
    launches: dict[int, list[Run]] = {}
    for run in Run.objects.filter(pk__in=further).only("launch_id", "looks").order_by("launch", "pk"):
        launches.setdefault(run.launch_id, []).append(run)
    for runs in launches.values():
        planned = [look for run in runs for look in looks_of(run)]
        at_looks += [each.information for each in planned[:-1]]
        for run in runs:
            side = so_far[further[run.pk]]
            for key, n in counts.get(run.pk, {}).items():
                side[key] = side.get(key, 0) + n
        at_looks.append(_information(so_far))
    return [each for each in at_looks if each is not None]


def _trials_by_run(runs: Collection[int]) -> dict[int, dict[str, int]]:
    by_run: dict[int, dict[str, int]] = {}
    for run, key, n in _pass_rollups(runs).values_list("run", "scenario__key", "n"):
        by_run.setdefault(run, {})[key] = n
    return by_run


def _information(sides: Sequence[Mapping[str, int]]) -> tuple[float, float] | None:
    shared = [(n, sides[1][key]) for key, n in sides[0].items() if key in sides[1]]
    return information_of(shared) if shared else None

"""Read what a look at an open run compares, and the levels that looks and further trials leave a comparison.

Further trials of two compared runs are a round of both, which only their comparison counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db.models import Count, Q

from evaluators.statistics.looks import (
    InterimLook,
    Levels,
    LookState,
    StoredLook,
    compute_information,
    state_of,
)
from evaluators.statistics.measure_change import Sample
from evaluators.statistics.significance import Arms
from runs.models import Launch, Run, RunMeasure, Trial
from runs.models.run import Preset
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
    return stored_looks(run.looks)


def stored_looks(rows: list[dict[str, Any]]) -> list[StoredLook]:
    """Return stored looks."""
    return msgspec.convert(rows, list[StoredLook])


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


def read_state(base: Run, new: Run, smallest: float, most: int, *, is_paired: bool) -> ComparedSides | None:
    """Return what a look compares; None if no scenario has results on both sides. Up to six queries.

    Trials of open runs count as far as they have ended, with all rounds; of a closed one only where it took turns.
    """
    changed = outcomes_changed_since(base, [new])[0]
    old, passes = (_passes_of(run, later=is_paired) for run in (base, new))
    passes = {key: sample for key, sample in passes.items() if key in old and key not in changed}
    state = state_of(old, passes, smallest, most, is_paired=is_paired)
    if state is None:
        return None
    pairs = [(old[key].n, passes[key].n) for key in passes]
    return ComparedSides(
        base.pk,
        (sum(each for each, _ in pairs), sum(each for _, each in pairs)),
        (max(each for each, _ in pairs), max(each for _, each in pairs)),
        state,
        information_of(pairs),
    )


def _passes_of(run: Run, *, later: bool) -> Passes:
    """Return a run's passes by scenario key. One query."""
    decided = Trial.objects.filter(
        run=run, is_retest=False, state=TrialState.FINISHED, outcome__in=("pass", "fail")
    )
    if not (run.is_open or later):
        decided = decided.filter(round=0)
    counts = decided.order_by().values_list("scenario__key")
    rows = counts.annotate(n=Count("pk"), passed=Count("pk", filter=Q(outcome="pass")))
    return {key: Sample(n, passed / n) for key, n, passed in rows}


def _pass_rollups(runs: Collection[int]) -> Any:
    rollups = RunMeasure.objects.filter(run__in=runs, measure__layer="trial", measure__name="pass", n__gt=0)
    return rollups.exclude(scenario=None)


def information_of(trials: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return the information about the pass rate and about the scenario with the most, from each scenario's trials."""
    arms = [Arms(0, old, 0, new) for old, new in trials]
    return compute_information(arms), max(compute_information([each]) for each in arms)


def levels_asked(before: Run, after: Run) -> Levels | None:
    """Return the levels of a comparison of two runs that looks compared; None for others. No query."""
    for run, other in ((after, before), (before, after)):
        if run.looks and other.pk in (run.looks[-1]["against"], run.reference_id):
            return levels_of_look(looks_of(run)[-1])
    return None


def levels_of_look(look: StoredLook) -> Levels:
    """Return a look's levels. Archives of other evalhubs may name any number."""
    return Levels(*(min(1.0, max(LEAST_LEVEL, each)) for each in (look.level, look.table_level)))


def information_before(base: Run, new: Run, looks: Sequence[StoredLook]) -> list[tuple[float, float]]:
    """Return the information at each look at two runs before they got further trials. At most one query.

    The first comparison is a look, unless the runs were looked at until a verdict; `looks` are those of earlier
    further trials.
    """
    counts = _trials_by_run([base.pk, new.pk])
    first = _information([counts.get(run.pk, {}) for run in (base, new)])
    planned = (
        [each.information for each in looks_of(new)] if levels_asked(base, new) else [first] if first else []
    )
    return [*planned, *(each.information for each in looks)]


def _trials_by_run(runs: Collection[int]) -> dict[int, dict[str, int]]:
    by_run: dict[int, dict[str, int]] = {}
    for run, key, n in _pass_rollups(runs).values_list("run", "scenario__key", "n"):
        by_run.setdefault(run, {})[key] = n
    return by_run


def _information(sides: Sequence[Mapping[str, int]]) -> tuple[float, float] | None:
    shared = [(n, sides[1][key]) for key, n in sides[0].items() if key in sides[1]]
    return information_of(shared) if shared else None


@dataclass(frozen=True)
class Extension:
    """Further trials of a run and of the one that it is compared with."""

    launch: Launch
    base: int
    new: Run

    @property
    def looks(self) -> list[StoredLook]:
        """What each look at both found, the first one first."""
        return stored_looks(self.launch.stop["looks"])

    @property
    def is_open(self) -> bool:
        """Whether trials may follow."""
        return not self.launch.stop["ended"]

    @property
    def note(self) -> str:
        """Why its trials don't count, or how many do."""
        if self.is_open:
            return "trials are running"
        if not self.looks:
            return next(
                (text for text in self.new.warnings[::-1] if text.endswith(" did not run.")), "no trial ran"
            )
        return self.looks[-1].reason or f"{sum(self.looks[-1].trials)} trials in all"


def extensions_of(runs: Iterable[Run]) -> list[Extension]:
    """Return the further trials of pairs of these runs, oldest first. One query."""
    keys = [run.pk for run in runs]
    launches = (
        Launch.objects.filter(preset=Preset.MORE, about__in=keys).select_related("about").order_by("pk")
    )
    return [
        Extension(launch, launch.request["base"], launch.about)
        for launch in launches
        if launch.about and launch.request["base"] in keys
    ]


def read_levels(base: Run, new: Run, extensions: Sequence[Extension] = ()) -> Levels | None:
    """Return the levels of a comparison whose later rounds count; None if it asked for none. No query."""
    pair = {base.pk, new.pk}
    counted = [each for each in extensions if {each.base, each.new.pk} == pair and each.looks]
    return levels_of_look(counted[-1].looks[-1]) if counted else levels_asked(base, new)

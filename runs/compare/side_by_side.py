"""Compare runs side by side: measures, scenarios, and where failing trials part ways with passing ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evaluators.statistics.measure_change import MeasureChange, Sample
from evaluators.tool_use.command_alignment import Divergence, closest_pair, first_divergence, most_common
from runs.compare.comparison import passes_of
from runs.compare.looks import extensions_of, read_levels
from runs.compare.measure_changes import RunComparison, compare_with_first
from runs.compare.shown_changes import ComparedMeasure, ShownChange
from runs.models import Measure, Run, RunMeasure, Trial
from runs.models.trial import TrialState
from runs.results.digests import command_sequences
from runs.results.measures import label_of
from runs.results.rates import Rate

FEWEST_SHARED = 2
"""The fewest scenarios with the same first difference that are worth a sentence."""


class EndedTrial(NamedTuple):
    """A finished trial of a compared run."""

    pk: int
    outcome: str
    number: int = 1
    """In its run, from 1."""
    run: int = 0


class DivergingTrials(NamedTuple):
    """A passed trial of the base and a failed one of the new run, and where their commands part ways."""

    base: int
    new: int
    divergence: Divergence | None
    """None if both ran the same commands."""


@dataclass(frozen=True)
class FirstDivergences:
    """The newly failing scenarios' first different commands."""

    newly_failing: int = 0
    scenarios: dict[str, DivergingTrials] = field(default_factory=dict)
    """By scenario key, where the commands of both trials are known."""

    @property
    def most_common(self) -> tuple[str, int]:
        """Return the command that is the first different one in most scenarios, and in how many."""
        return most_common(each.divergence for each in self.scenarios.values() if each.divergence)

    @property
    def sentence(self) -> str:
        """Return which first difference several newly failing scenarios share; empty if none."""
        command, n = self.most_common
        if n < FEWEST_SHARED:
            return ""
        return f"In {n} of {self.newly_failing} newly failing scenarios the first different command is `{command}`."


Sides = Mapping[str, tuple[Sequence[EndedTrial], Sequence[EndedTrial]]]
"""The finished trials of comparable scenarios in the base and in the new run, by key."""


def first_divergences(runs: Sequence[int], scenarios: Sides) -> FirstDivergences:
    """Return where the newly failing scenarios' trials part ways, by scenario key.

    `runs` are those that the trials are from. One query, two where a run is open, none if no scenario newly fails.
    """
    failing = {key: sides for key, sides in sorted(scenarios.items()) if _newly_fails(*sides)}
    if not failing:
        return FirstDivergences()
    commands = command_sequences(runs)
    diverging = {key: _diverging(*sides, commands) for key, sides in failing.items()}
    return FirstDivergences(len(failing), {key: each for key, each in diverging.items() if each})


def divergences_from(
    base: Run, others: Sequence[tuple[Run, RunComparison]], asked: Collection[int]
) -> list[FirstDivergences]:
    """Return where each later run's newly failing scenarios part ways with the first run's.

    The later rounds count of the runs `asked` and, beside them, of the first one. One query, and up to two for each
    run with newly failing scenarios.
    """
    runs = [base.pk, *(run.pk for run, _ in others)]
    rows = Trial.objects.filter(run__in=runs, is_retest=False, state=TrialState.FINISHED).order_by(
        "run", "position", "pk"
    )
    ended: dict[tuple[int, bool], dict[str, list[EndedTrial]]] = defaultdict(dict)
    for run, key, pk, outcome, later in rows.values_list("run", "scenario__key", "pk", "outcome", "round"):
        for counts in (True, False) if not later else (True,):
            ended[run, counts].setdefault(key, []).append(EndedTrial(pk, outcome, run=run))
    return [
        first_divergences(
            (base.pk, run.pk),
            {
                key: (
                    ended[base.pk, run.pk in asked].get(key, ()),
                    ended[run.pk, run.pk in asked].get(key, ()),
                )
                for key in comparison.scenarios
            },
        )
        for run, comparison in others
    ]


def divergences_json(divergences: FirstDivergences) -> dict[str, Any]:
    """Return the first differences as JSON."""
    command, n = divergences.most_common
    return {
        "newly_failing": divergences.newly_failing,
        "most_common": {"command": command, "scenarios": n} if n else None,
        "scenarios": [
            {
                "scenario": key,
                "base_trial": diverging.base,
                "new_trial": diverging.new,
                "number": diverging.divergence.number,
                "base_command": diverging.divergence.before or None,
                "new_command": diverging.divergence.after or None,
            }
            for key, diverging in divergences.scenarios.items()
            if diverging.divergence
        ],
    }


def _newly_fails(before: Sequence[EndedTrial], after: Sequence[EndedTrial]) -> bool:
    """Return whether a smaller share of a scenario's trials passes; errors don't count."""
    old, new = (Rate.of([each.outcome for each in side]) for side in (before, after))
    return new.change_from(old) == "worse"


def _diverging(
    before: Sequence[EndedTrial], after: Sequence[EndedTrial], commands: Mapping[int, tuple[str, ...]]
) -> DivergingTrials | None:
    passed = [each.pk for each in before if each.outcome == "pass" and each.pk in commands]
    failed = [each.pk for each in after if each.outcome == "fail" and each.pk in commands]
    closest = closest_pair([commands[pk] for pk in passed], [commands[pk] for pk in failed])
    if closest is None:
        return None
    base, new = passed[closest[0]], failed[closest[1]]
    return DivergingTrials(base, new, first_divergence(commands[base], commands[new]))


@dataclass(frozen=True)
class ComparedRun:
    """A run compared with the first one."""

    run: Run
    comparison: RunComparison
    divergences: FirstDivergences
    pooled: tuple[int, ...]
    """Keys of both runs if further trials count that were run for their comparison."""


def compared_with_first(runs: Sequence[Run], *, fresh: bool = True) -> list[ComparedRun]:
    """Compare each later run with the first one, by default with the further trials of both.

    Three to six queries, and two for each run with newly failing scenarios. Expects the runs' guidance to be loaded.
    """
    base, *others = runs
    extensions = extensions_of(runs) if fresh else []
    compared = compare_with_first(base, others, extensions=extensions)
    asked = [run.pk for run in others if read_levels(base, run, extensions)]
    divergences = divergences_from(base, list(zip(others, compared, strict=True)), asked)
    pooled = {each.new.pk: each.base for each in extensions if each.looks}
    return [
        ComparedRun(run, comparison, apart, (base.pk, run.pk) if pooled.get(run.pk) == base.pk else ())
        for run, comparison, apart in zip(others, compared, divergences, strict=True)
    ]


MOST_COMPARED = 10
"""The most runs of one comparison."""


@dataclass(frozen=True)
class SideBySide:
    """Rows over the same runs; None where a run has no value."""

    runs: list[Run]
    measures: list[tuple[Measure, list[Sample | None]]]
    """The scenarios' means of each run, as a sample."""
    scenarios: list[tuple[str, list[bool | None]]]


def side_by_side(runs: Sequence[Run]) -> SideBySide:
    """Return the runs' rollups and passed scenarios. Two queries."""
    passed = list(passes_of([run.pk for run in runs]).values())
    keys = sorted({key for by_key in passed for key in by_key})
    return SideBySide(
        list(runs), measures_with_cells(runs), [(key, [each.get(key) for each in passed]) for key in keys]
    )


def compared_measure(
    measure: Measure, cells: Sequence[Sample | None], change: MeasureChange | None
) -> ComparedMeasure:
    """Return a measure of two runs: what was compared, else their means."""
    means = [cell.mean if cell else None for cell in cells]
    before, after = (change.before, change.after) if change else means
    shown = ShownChange(change) if change else None
    return ComparedMeasure(label_of(measure), measure.unit, before, after, shown, str(measure))


def measures_with_cells(runs: Sequence[Run]) -> list[tuple[Measure, list[Sample | None]]]:
    """Return every measure of the runs, with each run's means of scenarios as a sample. One query."""
    cells: dict[Measure, dict[int, Sample]] = {}
    rows = RunMeasure.objects.filter(run__in=runs, scenario=None).select_related("measure")
    for row in rows.order_by("measure"):
        cells.setdefault(row.measure, {})[row.run_id] = Sample(row.n, row.mean, row.m2)
    return [(measure, [own.get(run.pk) for run in runs]) for measure, own in cells.items()]

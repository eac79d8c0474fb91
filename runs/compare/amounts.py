"""Compare a run's time, cost, tokens and counts with those of its line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import log
from statistics import fmean

from evaluators.statistics.line import FEWEST_RUNS, compare_amount
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange, Sample, Scale
from runs.compare.line import Reference
from runs.compare.measure_changes import LineRuns, RunComparison, samples_of
from runs.models import Run, Trial
from runs.models.comparison import OF_AMOUNTS, AlertKind
from runs.models.trial import TrialState

OF_TRIALS = ("trial/seconds", "trial/cost_usd", "trial/tokens_in", "trial/tokens_out")
"""Amounts that vary by factors, so that logarithms compare them; 0 and errors are left out."""
_Samples = Mapping[int, Mapping[str, Sample]]
"""By run and scenario key."""


def amounts_against_line(compared: RunComparison, side: Reference, new: Run) -> RunComparison:
    """Return a comparison whose amounts are compared with the run's line, where it has enough runs. Two queries."""
    lines = {measure: side.amounts[kind] for kind, measure in OF_AMOUNTS.items() if kind in side.amounts}
    relative = [each for each in compared.others if each.scale is Scale.RELATIVE]
    if compared.no_verdict or not any(
        len(each.old) >= FEWEST_RUNS for each in (side.earlier, *lines.values())
    ):
        return compared
    runs = [new, *side.earlier.runs, *(run for line in lines.values() for run in line.runs)]
    of_trials = _read_trials(runs)
    counts = samples_of(runs, [each.measure for each in relative if each.measure not in OF_TRIALS])
    changes = {}
    for each in relative:
        name = each.measure
        line = lines.get(name, side.earlier)
        if name in OF_TRIALS:
            change = _compare_logs(each, line, new, of_trials[name])
        else:
            change = _compare_counts(each, line, new, counts.get(name, {}))
        if change.verdict is not ChangeVerdict.NOT_COMPARABLE:
            changes[name] = change
    return replace(compared, others=tuple(changes.get(each.measure, each) for each in compared.others))


def _compare_counts(change: MeasureChange, line: LineRuns, new: Run, samples: _Samples) -> MeasureChange:
    return compare_amount(change, line.line(change, samples), samples.get(new.pk, {}))


def _compare_logs(
    change: MeasureChange, line: LineRuns, new: Run, samples: tuple[_Samples, _Samples]
) -> MeasureChange:
    (logs, amounts), key = samples, new.pk
    plain = line.line(change, amounts), amounts.get(key, {})
    return compare_amount(change, line.line(change, logs), logs.get(key, {}), plain)


def _read_trials(runs: Sequence[Run]) -> dict[str, tuple[_Samples, _Samples]]:
    """Return each amount's logarithms, and the amounts themselves, of trials that have it. One query."""
    trials = Trial.objects.filter(run__in=runs, state=TrialState.FINISHED, round=0)
    columns = ("seconds", "cost_usd", "tokens_in", "tokens_out")
    values: dict[str, dict[tuple[int, str], list[float]]] = {name: defaultdict(list) for name in OF_TRIALS}
    rows = trials.exclude(outcome="error").values_list("run", "scenario__key", *columns)
    for run, key, *amounts in rows.order_by():
        for name, amount in zip(OF_TRIALS, amounts, strict=True):
            if amount and amount > 0:
                values[name][run, key].append(float(amount))
    return {
        name: (
            _by_run({place: list(map(log, each)) for place, each in known.items()}),
            _by_run(known),
        )
        for name, known in values.items()
    }


def _by_run(values: Mapping[tuple[int, str], Sequence[float]]) -> _Samples:
    samples: dict[int, dict[str, Sample]] = {}
    for (run, key), each in values.items():
        samples.setdefault(run, {})[key] = _sample(each)
    return samples


def _sample(values: Sequence[float]) -> Sample:
    mean = fmean(values)
    return Sample(len(values), mean, sum((each - mean) ** 2 for each in values))


def worse_amounts(changes: Iterable[MeasureChange]) -> set[AlertKind]:
    """Return the kinds of alerts of the amounts that grew against their line."""
    grew = {
        each.measure for each in changes if each.verdict is ChangeVerdict.REGRESSED and each.runs_before > 1
    }
    return {kind for kind, measure in OF_AMOUNTS.items() if measure in grew}

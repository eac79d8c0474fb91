"""Compare a run's time, cost, tokens and counts with its line, and find declines that no single run shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import log
from statistics import fmean
from typing import Any, NamedTuple

from evaluators.statistics.comparability import outcome_reasons
from evaluators.statistics.line import (
    DRIFT_ENDS,
    DRIFT_FEWEST,
    DRIFT_RUNS,
    FEWEST_RUNS,
    compare_amount,
    find_drift,
)
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange, Sample, Scale
from runs.compare.line import Reference
from runs.compare.measure_changes import PASS, LineRuns, RunComparison, read_samples, smallest_of_pass_rate
from runs.models import Alert, Run, Trial
from runs.models.comparison import OF_AMOUNTS, OPEN_ALERTS, AlertKind
from runs.models.trial import TrialState
from runs.results.comparability import parts_changed_since

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
    counts = read_samples(runs, [each.measure for each in relative if each.measure not in OF_TRIALS])
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


class Decline(NamedTuple):
    """A decline of a line."""

    stored: dict[str, Any]
    """As `Alert.drift`."""
    is_certain: bool
    middle: int
    """The run in the middle of the oldest ones."""


def decline_of(run: Run, members: Sequence[Run]) -> Decline | None:
    """Return by how much the newest runs of a run's line fell below its oldest; None if they didn't.

    Takes the line's earlier runs, oldest first. Each counts by the scenarios that it shares with the run, with the same
    content, as their distance from their means; only what came after the line's last alert of a drift counts. At most
    five queries.
    """
    last = (
        Alert.objects.filter(
            kind=AlertKind.DRIFT,
            run__suite=run.suite_id,
            run__target=run.target_id,
            run__model=run.model,
            run__branch=run.branch,
            run__lt=run.pk,
        )
        .order_by("-run")
        .first()
    )
    if last is not None and last.state in OPEN_ALERTS:
        return None
    earlier = [each for each in members if last is None or each.pk > last.run_id][1 - DRIFT_RUNS :]
    if len(earlier) + 1 < DRIFT_FEWEST:
        return None
    rates = _rates(run, earlier)
    drift = find_drift(list(rates.values()), smallest_of_pass_rate(run.project))
    if drift is None:
        return None
    decline = {
        "since": list(rates)[-DRIFT_ENDS],
        "until": run.pk,
        "before": drift.before,
        "after": drift.after,
        "runs": len(rates),
    }
    return Decline(decline, drift.is_certain, list(rates)[DRIFT_ENDS // 2])


def _rates(run: Run, earlier: Sequence[Run]) -> dict[int, float]:
    """Return each run's pass rate over the new run's scenarios, oldest first."""
    changed = [outcome_reasons(why) for why in parts_changed_since(run, earlier, prices=False)]
    runs = [*earlier, run]
    samples = read_samples(runs, [PASS]).get(PASS, {})
    tonight = samples.get(run.pk, {})
    means = {
        each.pk: {
            key: sample.mean
            for key, sample in samples.get(each.pk, {}).items()
            if key in tonight and key not in why
        }
        for each, why in zip(runs, (*changed, {}), strict=True)
    }
    by_key = {key: [own[key] for own in means.values() if key in own] for key in tonight}
    level = {key: fmean(values) for key, values in by_key.items()}
    middle = fmean(level.values()) if level else 0.0
    return {
        pk: middle + fmean(mean - level[key] for key, mean in own.items()) for pk, own in means.items() if own
    }


def drift_sentence(drift: Mapping[str, Any]) -> str:
    """Return an alert's decline in words."""
    fell = f"The pass rate fell from {drift['before'] * 100:.0f} % to {drift['after'] * 100:.0f} %"
    if "until" not in drift:
        # Of older releases.
        return f"{fell} from run {drift['since']} on, which the last {drift['runs']} runs show together and no single one does."
    return (
        f"{fell}: runs {drift['since']} to {drift['until']} together are below the oldest {DRIFT_ENDS} of"
        f" {drift['runs']}."
    )

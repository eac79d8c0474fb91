"""Find a decline of a line that is too slow for any single run to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from evaluators.statistics.change_points import ChangePoint, rate_changes
from evaluators.statistics.comparability import outcome_reasons
from runs.models import Alert, Run, RunMeasure
from runs.models.comparison import OPEN_ALERTS, AlertKind
from runs.results.comparability import parts_changed_since


def decline_of(run: Run, members: Sequence[int]) -> dict[str, Any] | None:
    """Return where the pass rate of a run's line fell for the last time, as `Alert.drift`; None where it didn't.

    Takes the line's earlier runs, oldest first. Only those count that have every scenario of the run with the same
    content, and only what came after the line's last alert of a drift. At most six queries.
    """
    last = _alerts(run).order_by("-run").first()
    if last is not None and last.state in OPEN_ALERTS:
        return None
    keys = [key for key in members if last is None or key > last.run_id]
    passes = _passes([*keys, run.pk])
    same = _alike(run, keys, passes)
    runs = [*same, run.pk]
    totals = [_total(passes[key], passes[run.pk]) for key in runs]
    changes = rate_changes([passed for passed, _ in totals], [trials for _, trials in totals])
    return _decline(changes[-1], runs, run.project.smallest_effect) if changes else None


def _alerts(run: Run) -> QuerySet[Alert]:
    return Alert.objects.filter(
        kind=AlertKind.DRIFT,
        run__suite=run.suite_id,
        run__target=run.target_id,
        run__model=run.model,
        run__branch=run.branch,
        run__lt=run.pk,
    )


def _passes(runs: Sequence[int]) -> dict[int, dict[str, tuple[int, int]]]:
    """Return the passed trials, and trials, of each run's scenarios by key. One query."""
    rows = RunMeasure.objects.filter(run__in=runs, measure__layer="trial", measure__name="pass")
    passes: dict[int, dict[str, tuple[int, int]]] = {key: {} for key in runs}
    for key, scenario, mean, n in rows.exclude(scenario=None).values_list(
        "run", "scenario__key", "mean", "n"
    ):
        passes[key][scenario] = (round(mean * n), n)
    return passes


def _alike(run: Run, keys: Sequence[int], passes: Mapping[int, Mapping[str, tuple[int, int]]]) -> list[int]:
    """Return the runs that have every scenario of a run with the same content."""
    earlier = Run.objects.in_bulk([key for key in keys if passes[run.pk].keys() <= passes[key].keys()])
    runs = [earlier[key] for key in keys if key in earlier]
    run_keys = passes[run.pk].keys()
    changed = parts_changed_since(run, runs, prices=False)
    pairs = zip(runs, changed, strict=True)
    return [other.pk for other, why in pairs if run_keys.isdisjoint(outcome_reasons(why))]


def _total(passes: Mapping[str, tuple[int, int]], keys: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    return sum(passes[key][0] for key in keys), sum(passes[key][1] for key in keys)


def _decline(change: ChangePoint, runs: Sequence[int], smallest: float) -> dict[str, Any] | None:
    if change.before - change.after < smallest:
        return None
    return {"since": runs[change.at], "before": change.before, "after": change.after, "runs": len(runs)}


def drift_sentence(drift: Mapping[str, Any]) -> str:
    """Return an alert's decline in words."""
    return (
        f"The pass rate fell from {drift['before'] * 100:.0f} % to {drift['after'] * 100:.0f} % from run {drift['since']} "
        f"on, which the last {drift['runs']} runs show together and no single one does."
    )

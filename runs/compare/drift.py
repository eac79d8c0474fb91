"""Find a decline of a line that is too slow for any single run to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from evaluators.statistics.comparability import outcome_reasons
from evaluators.statistics.line import DRIFT_ENDS, DRIFT_FEWEST, DRIFT_RUNS, find_drift
from runs.compare.measure_changes import PASS, samples_of, smallest_of_pass_rate
from runs.models import Alert, Run
from runs.models.comparison import OPEN_ALERTS, AlertKind
from runs.results.comparability import parts_changed_since


class Decline(NamedTuple):
    """A decline of a line."""

    stored: dict[str, Any]
    """As `Alert.drift`."""
    is_certain: bool
    middle: int
    """The run in the middle of the oldest ones."""


def decline_of(run: Run, members: Sequence[int]) -> Decline | None:
    """Return by how much the newest runs of a run's line fell below its oldest; None if they didn't.

    Takes the line's earlier runs, oldest first. Each counts by the scenarios that it shares with the run, with the same
    content, as their distance from their means; only what came after the line's last alert of a drift counts. At most
    six queries.
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
    keys = [key for key in members if last is None or key > last.run_id][1 - DRIFT_RUNS :]
    if len(keys) + 1 < DRIFT_FEWEST:
        return None
    rates = _rates(run, keys)
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


def _rates(run: Run, keys: Sequence[int]) -> dict[int, float]:
    """Return each run's pass rate over the new run's scenarios, oldest first."""
    known = Run.objects.in_bulk(keys)
    earlier = [known[key] for key in keys if key in known]
    changed = [outcome_reasons(why) for why in parts_changed_since(run, earlier, prices=False)]
    runs = [*earlier, run]
    samples = samples_of(runs, [PASS]).get(PASS, {})
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

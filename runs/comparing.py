"""A closed run against its baseline."""

from __future__ import annotations

from runs.models import Baseline, Run


def baseline_of(run: Run) -> Run | None:
    """Return the run that this one is held against: pinned for its branch, else for its suite and target."""
    pinned = Baseline.objects.filter(suite=run.suite_id, target=run.target_id, branch__in={run.branch, ""})
    chosen = pinned.order_by("-branch").select_related("run").first()
    return chosen.run if chosen and chosen.run_id != run.pk else None


def compare_with_baseline(run: Run) -> None:
    """Note which baseline the run is held against."""
    baseline = run.baseline or baseline_of(run)
    if baseline is not None and run.baseline_id != baseline.pk:
        Run.objects.filter(pk=run.pk).update(baseline=baseline)

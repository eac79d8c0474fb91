"""A closed run against its baseline."""

from __future__ import annotations

from dataclasses import dataclass, field

from runs.models import Baseline, Run, Trial
from runs.models.trial import TrialState


@dataclass(frozen=True)
class PassChanges:
    """Which scenarios went from passed to failed and back, by key; empty without a baseline."""

    regressions: list[str] = field(default_factory=list)
    new_passes: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def passes(run_id: int) -> dict[str, bool]:
    """Return for each scenario whether it passed: every trial that is no error did, and there was one."""
    rows = Trial.objects.filter(run=run_id, state=TrialState.FINISHED).exclude(outcome="error")
    found: dict[str, bool] = {}
    for key, outcome in rows.values_list("scenario__key", "outcome"):
        found[key] = found.get(key, True) and outcome == "pass"
    return found


def pass_changes(run: Run) -> PassChanges:
    """Return what changed against the run's baseline."""
    if run.baseline_id is None:
        return PassChanges()
    before, after = passes(run.baseline_id), passes(run.pk)
    common = before.keys() & after.keys()
    return PassChanges(
        regressions=sorted(key for key in common if before[key] and not after[key]),
        new_passes=sorted(key for key in common if after[key] and not before[key]),
        added=sorted(after.keys() - before.keys()),
        removed=sorted(before.keys() - after.keys()),
    )


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

"""Decide on an alert by its *Confirm…*: the new and the old configuration in turn."""

from __future__ import annotations

from django.utils import timezone

from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from evaluators.statistics.verdict_sentences import size
from runs.compare.measure_changes import RunComparison, compare_run_measures
from runs.compare.raised_alerts import notify
from runs.models import Alert, Launch, Run
from runs.models.comparison import Evidence
from runs.models.run import OPEN, Arm, RunState
from runs.results.measures import label_of_key


def conclude(launch_id: int) -> None:
    """Store what a confirmation shows, once both its runs are closed. Safe to repeat; requires a transaction."""
    alert = Alert.objects.select_for_update().filter(confirmation=launch_id).first()
    if alert is None or Run.objects.filter(launch=launch_id, state__in=OPEN).exists():
        return
    launch = Launch.objects.get(pk=launch_id)
    runs = {run.arm: run for run in launch.runs.select_related("project")}
    new, old = runs[Arm.NEW], runs[Arm.OLD]
    if problem := _problem(new, old):
        # Nothing was decided, so it can be confirmed again.
        alert.confirmation, alert.reason = None, problem
        alert.save(update_fields=["confirmation", "reason"])
        return
    compared = compare_run_measures(old, new)
    is_confirmed = compared.verdict is ChangeVerdict.REGRESSED
    alert.evidence = Evidence.CONFIRMED if is_confirmed else Evidence.NOT_CONFIRMED
    alert.reason = _sentence(compared)
    alert.decided = alert.decided if is_confirmed else alert.decided or timezone.now()
    alert.save(update_fields=["evidence", "reason", "decided"])
    if is_confirmed:
        notify(alert, new)


def _problem(new: Run, old: Run) -> str:
    """Return why two runs can't decide, in a sentence; empty if they can."""
    if any(run.state == RunState.CANCELLED for run in (new, old)):
        return "The confirmation was cancelled."
    for run, which in ((new, "new"), (old, "old")):
        if run.error:
            return f"The {which} configuration can't run any more: {run.error}"
        if run.cancelled:
            return "The budget was reached before both configurations had run."
    return compare_run_measures(old, new).no_verdict


def _sentence(compared: RunComparison) -> str:
    changes = [each for each in compared.headline if each.verdict is ChangeVerdict.REGRESSED or each.broke]
    shown = changes or list(compared.headline[:1])
    sizes = "; ".join(map(_sizes, shown)) or "nothing could be compared"
    return f"Both configurations ran again, in turn: {sizes}."


def _sizes(change: MeasureChange) -> str:
    label, trials = label_of_key(change.measure), change.trials
    return f"{label} {size(change, change.effect)} ({trials[0]} and {trials[1]} trials)"

"""Raise a closed run's alerts, and decide on earlier ones: suspected, confirmed, not confirmed, fixed.

red by the run alone ──▶ suspected ──next run is worse, too──▶ confirmed ◀── a scenario broke, or several runs are red
                             └────── next run isn't ──▶ not confirmed: the line goes on

*Confirm…* also decides on an alert, by runs of the new and the old configuration in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from evalhub.teams import audit
from evalhub.teams.models import NotifyWhen
from evaluators.name_lists import list_names
from evaluators.statistics.line import is_confirmed_by
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from evaluators.statistics.retest import LEAST_FALL, RetestOutcome
from evaluators.statistics.verdict_sentences import describe_size
from runs.compare.amounts import Decline, decline_of, worse_amounts
from runs.compare.differences import kind_of_regression
from runs.compare.line import Reference
from runs.compare.lost_scenarios import changes_of_run, stored_changes
from runs.compare.measure_changes import PASS, RunComparison, compare_run_measures, smallest_of_pass_rate
from runs.db import outbox
from runs.models import Alert, Launch, Run
from runs.models.comparison import OF_SUITE, OPEN_ALERTS, AlertKind, AlertState, Evidence
from runs.models.run import OPEN, Arm, RunState
from runs.results.measures import label_of_key

_Wanted = dict[AlertKind, dict[str, Any]]
"""Alerts to raise, by kind, with their fields."""


def keep_alerts(run: Run, side: Reference, comparison: RunComparison | None, *, is_new: bool) -> None:
    """Raise a run's alerts, remove untriaged ones that no longer apply, and decide on earlier ones.

    Expects the run's verdict to be stored. Requires a transaction.
    """
    wanted: _Wanted = {}
    if comparison is not None and run.verdict and not run.is_experiment:
        _settle(run, side, comparison)
        _close_fixed(run, side)
        wanted = _alerts_of_suite(run, side, comparison) | _alerts_of_amounts(run, side, comparison)
        if not wanted.keys() & OF_SUITE and (decline := _find_drift(run, side)):
            if decline.is_certain:
                wanted[AlertKind.DRIFT] = {"evidence": Evidence.CONFIRMED, "drift": decline.stored}
            else:
                _store_fall(run, decline)
    if not is_new:
        Alert.objects.filter(run=run, triaged=False).exclude(kind__in=wanted).delete()
    for kind, fields in wanted.items():
        alert, is_first = Alert.objects.get_or_create(
            run=run, kind=kind, defaults={"project_id": run.project_id, **fields}
        )
        if is_first:
            notify(alert, run)
        elif added := [key for key in fields.get("named", ()) if key not in alert.named]:
            Alert.objects.filter(pk=alert.pk).update(named=[*alert.named, *added])


def notify(alert: Alert, by: Run) -> None:
    """Notify of an alert once it is confirmed, or at once where its project wants that; `by` is the run that showed it."""
    is_due = alert.evidence == Evidence.CONFIRMED or by.project.notify_when == NotifyWhen.AT_ONCE
    if is_due and outbox.is_recent(by):
        outbox.record_alert(alert)


def is_red(comparison: RunComparison) -> bool:
    """Return whether the suite as a whole is worse, beside its scenarios."""
    return any(each.verdict is ChangeVerdict.REGRESSED for each in comparison.headline)


def _alerts_of_suite(run: Run, side: Reference, comparison: RunComparison) -> _Wanted:
    if run.verdict != ChangeVerdict.REGRESSED or run.baseline is None:
        return {}
    kind = kind_of_regression(run.baseline, run)
    named = [key for each in comparison.headline for key in each.broke if key not in side.held]
    if kind is not None and side.is_red and named:
        named = _add_names(run, side, named)
    if kind is None or (side.since and not named and not _is_new_loss(run, side, comparison)):
        return {}
    regressed = [each for each in comparison.headline if each.verdict is ChangeVerdict.REGRESSED]
    # What one comparison names without fresh trials was chosen because it looked bad.
    fresh = set(run.find_retested(RetestOutcome.NAMED))
    is_sure = (
        (named and not side.is_alone) or fresh & set(named) or any(each.window > 1 for each in regressed)
    )
    evidence = Evidence.CONFIRMED if is_sure else Evidence.SUSPECTED
    return {kind: {"evidence": evidence, "named": named}}


def _add_names(run: Run, side: Reference, keys: Sequence[str]) -> list[str]:
    """Add scenarios to the open alert of the suite in whose run they fell already; return the others."""
    alert = Alert.objects.filter(run=side.since, kind__in=OF_SUITE, state__in=OPEN_ALERTS).first()
    before = changes_of_run(side.since or 0)
    fell = [key for key in keys if key in before and (before[key].effect or 0.0) <= -LEAST_FALL]
    if alert is None or not fell:
        return list(keys)
    alert.named = [*alert.named, *fell]
    alert.evidence = Evidence.CONFIRMED
    alert.save(update_fields=["named", "evidence"])
    notify(alert, run)
    return [key for key in keys if key not in fell]


def _is_new_loss(run: Run, side: Reference, comparison: RunComparison) -> bool:
    """Return whether the suite is worse without the scenarios that open alerts name, and no alert says so."""
    if side.is_red or not is_red(comparison):
        return False
    if any(each.verdict is ChangeVerdict.REGRESSED for each in comparison.headline if each.measure != PASS):
        return True
    return _is_worse_elsewhere(run, side, comparison)


def _is_worse_elsewhere(run: Run, side: Reference, comparison: RunComparison) -> bool:
    """Return whether the scenarios that no open alert names fell by the smallest effect."""
    others = [each.effect or 0.0 for key, each in comparison.scenarios.items() if key not in side.held]
    return bool(others) and sum(others) / len(others) <= -smallest_of_pass_rate(run.project)


def _alerts_of_amounts(run: Run, side: Reference, comparison: RunComparison) -> _Wanted:
    raised = {
        kind
        for kind in worse_amounts(comparison.others)
        if (run.project.alert_dearer if kind is AlertKind.DEARER else run.project.alert_slower)
    }
    return {
        kind: {"evidence": Evidence.CONFIRMED} for kind in sorted(raised) if not side.amounts[kind].pending
    }


def _store_fall(run: Run, decline: Decline) -> None:
    """Store how far a calm run lies below its line's oldest runs, and how long ago these ran."""
    oldest = Run.objects.filter(pk=decline.middle).values_list("finished", flat=True).first()
    days = (run.finished - oldest).days if run.finished and oldest else 0
    run.old_side["fell"] = {"by": decline.stored["before"] - decline.stored["after"], "days": days}
    run.save(update_fields=["old_side"])


def _find_drift(run: Run, side: Reference) -> Decline | None:
    is_known = run.verdict == ChangeVerdict.REGRESSED or run.configuration_changed or side.since
    return decline_of(run, side.members) if side.members and not is_known else None


def _settle(run: Run, side: Reference, comparison: RunComparison) -> None:
    """Decide on the suspected alerts of a frozen line: is the run worse than the frozen line, too?"""
    if not side.since:
        return
    waiting = Alert.objects.filter(
        run__suite=run.suite_id,
        run__target=run.target_id,
        run__model=run.model,
        run__branch__in=run.line_branches,
        run__gte=side.since,
        run__lt=run.pk,
        kind__in=OF_SUITE,
        state__in=OPEN_ALERTS,
        evidence=Evidence.SUSPECTED,
    )
    for alert in waiting.select_for_update(of=("self",)).order_by("run"):
        _settle_alert(alert, run, side, comparison)


def _settle_alert(alert: Alert, run: Run, side: Reference, comparison: RunComparison) -> None:
    suspected = {
        each.measure for each in stored_changes(alert.run_id) if each.verdict is ChangeVerdict.REGRESSED
    }
    tonight = [each for each in comparison.headline if each.measure in suspected and each.window == 1]
    if not tonight and not alert.named:
        return
    is_below = any(map(is_confirmed_by, tonight))
    if alert.run_id != side.since and PASS in suspected:
        # What other alerts name is below the line, whatever the rest does.
        is_below = is_below and _is_worse_elsewhere(run, side, comparison)
    is_confirmed = is_below or bool(set(alert.named) & set(run.old_side["worse"]))
    alert.evidence = Evidence.CONFIRMED if is_confirmed else Evidence.NOT_CONFIRMED
    alert.reason = (
        f"Run {run.pk} is {'worse than the line, too' if is_confirmed else 'not worse than the line'}."
    )
    alert.decided = None if is_confirmed else run.finished
    alert.save(update_fields=["evidence", "reason", "decided"])
    if is_confirmed:
        notify(alert, run)


def _close_fixed(run: Run, side: Reference) -> None:
    """Close alerts as fixed whose last scenario fresh trials of the run showed as fixed."""
    fixed = set(run.find_retested(RetestOutcome.FIXED))
    for since in {side.held[key] for key in side.held.keys() & fixed}:
        own = {key for key, named_by in side.held.items() if named_by == since}
        if own - fixed or AlertKind.REGRESSION in run.old_side["red"]:
            continue
        keys = sorted(own)
        what = "passes" if len(keys) == 1 else "pass"
        reason = f"Fresh trials of run {run.pk} show that {list_names(keys, 5)} {what} again."
        alerts = Alert.objects.filter(run=since, kind__in=OF_SUITE, state__in=OPEN_ALERTS)
        if alerts.update(state=AlertState.FIXED, decided=run.finished, reason=reason):
            audit.append_event(
                run.project, None, "alert.triage", f"run {since}", changed=["state"], state=AlertState.FIXED
            )


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
    return f"{label} {describe_size(change, change.effect)} ({trials[0]} and {trials[1]} trials)"

"""The line of a run: the earlier runs that its verdict compares it with, and why these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from evaluators.statistics.comparability import Reasons, outcome_reasons
from evaluators.statistics.line import FEWEST_RUNS
from evaluators.statistics.line_members import AlertDecision, LineRun, Members, members_after
from runs.compare.baselines import NEWEST_FIRST, baseline_of, newest_among, pinned_run, runs_alike
from runs.compare.causes import same_fingerprint
from runs.compare.fresh_trials import fresh_runs, pool_of
from runs.compare.measure_changes import Pool
from runs.models import Alert, Run, RunMeasure
from runs.models.comparison import OPEN_ALERTS, AlertKind, AlertState, Evidence
from runs.models.run import MAINLINE, NOT_CONFIRMING, Trigger
from runs.results.comparability import both_known, find_judge, parts_changed_since
from runs.results.rates import run_rate

RECENT = 60
"""Earlier runs from which a line is made."""
LEAST_SHARE = 0.5
"""The share of a run's scenarios that a run of its line has at least."""
ALONE = Q(old_side__runs__isnull=True) | Q(old_side__runs=[])
"""Runs that are compared with their baseline alone."""
_DECISIONS = {
    AlertState.WONT_FIX.value: AlertDecision.ACCEPTED,
    AlertState.INVALID.value: AlertDecision.REJECTED,
    AlertState.FIXED.value: AlertDecision.FIXED,
}


@dataclass(frozen=True)
class OldSide:
    """What a run's verdict is made with."""

    baseline: Run | None
    """The one run that lists and measures without a line are compared with: the newest of the line."""
    line: tuple[Pool, ...] = ()
    """The runs of the line, newest first; empty if the comparison is with the baseline alone."""
    reasons: tuple[Mapping[str, Reasons], ...] = ()
    """What changed in each scenario since each run of the line, by key."""
    since: int | None = None
    """The run whose undecided regression froze the line."""
    again: tuple[int, ...] = ()
    """Earlier runs of it with the same configuration, whose trials count with the run's own."""
    is_pinned: bool = False
    best_of: int = 0
    """Among how many runs the pinned one has the highest pass rate; 0 if it hasn't."""
    members: tuple[int, ...] = ()
    """All known runs of the line, oldest first; empty for that of the default branch."""

    def stored(self, *, regressed: bool) -> dict[str, Any]:
        """Return it as `Run.old_side`."""
        return {
            "runs": [each.run.pk for each in self.line],
            "since": self.since if regressed else None,
            "again": list(self.again),
            "is_pinned": self.is_pinned,
            "best_of": self.best_of,
            "compared": timezone.now().isoformat(),
        }


def old_side_of(run: Run, choice: str) -> OldSide:
    """Return what a closed run is compared with; `choice` is its request's baseline.

    In order: the request's choice, the pinned run, the line of its branch, that of the default
    branch, and with fewer than `FEWEST_RUNS` runs the last one that didn't regress. A run until a verdict has the one run
    that its looks compared with. At most nine queries.
    """
    if choice or run.trigger == Trigger.CONFIRM or run.more_of_id or run.looks:
        return OldSide(baseline_of(run, choice))
    pinned = pinned_run(run)
    history = _History(run)
    branch_line = history.members(MAINLINE if run.branch in MAINLINE else (run.branch,))
    since, again = (None, ()) if run.is_experiment else history.frozen(branch_line)
    if pinned is not None:
        return OldSide(pinned, since=since, again=again, is_pinned=True, best_of=_best_of(pinned, history))
    lines = [branch_line] if run.branch in MAINLINE else [branch_line, history.members(MAINLINE)]
    for members in lines:
        usable = _line(run, [history.runs[key] for key in members.newest if key in history.runs])
        if usable is not None:
            baseline, line, reasons = usable
            since = since or _frozen_by(members, run)
            # The default branch's own runs say whether it drifts.
            whole = tuple(members.line) if members is branch_line else ()
            return OldSide(baseline, line, reasons, since, again, members=whole)
    return OldSide(_last(run, history, lines), since=since or _frozen_by(lines[-1], run), again=again)


def _best_of(pinned: Run, history: _History) -> int:
    others = [each for each in history.recent if each.pk != pinned.pk][-2 * FEWEST_RUNS :]
    if len(others) + 1 < FEWEST_RUNS or max(map(_pass_rate, others)) >= _pass_rate(pinned):
        return 0
    return len(others) + 1


def _pass_rate(run: Run) -> float:
    return run_rate(run).share


def _frozen_by(members: Members, run: Run) -> int | None:
    return None if run.is_experiment else members.since


def line_runs(run: Run) -> QuerySet[Run]:
    """Return the earlier runs that a run's line is made from, newest first.

    They are finished, of the same suite, target and model, no experiments or confirmations, and have at least two
    thirds of their trials.
    """
    alike = runs_alike(run).filter(NOT_CONFIRMING, pk__lt=run.pk, more_of=None)
    lacking = alike.alias(lacking=2 * F("trials") - 3 * (F("passed") + F("failed"))).filter(lacking__lt=0)
    return lacking.order_by(*NEWEST_FIRST)


class _History:
    """The runs before one, of which lines are made."""

    def __init__(self, run: Run) -> None:
        recent = list(line_runs(run).select_related("alert", "project")[:RECENT])
        judge = find_judge(run)
        self.run = run
        self.alike = [each.pk for each in recent]
        """Also those with another judge."""
        self.recent = [each for each in recent if _is_same(judge, find_judge(each))][::-1]
        self.runs = {each.pk: each for each in self.recent}

    def members(self, branches: Sequence[str]) -> Members:
        """Return the line of these branches."""
        runs = [each for each in self.recent if each.branch in branches]
        first = self._first_red(runs)
        if first is None:
            return members_after([_past(each) for each in runs])
        return members_after([_past(each) for each in (first, *runs)], first.old_side.get("runs", [])[::-1])

    def _first_red(self, branch_runs: Sequence[Run]) -> Run | None:
        """Return the run that froze the line before the oldest of these, and load the runs of its line."""
        since = branch_runs[0].old_side.get("since") if branch_runs else None
        if not since or since in self.runs:
            return None
        runs = Run.objects.select_related("alert", "project")
        first = runs.filter(pk=since).first()
        if first is not None:
            self.runs |= {each.pk: each for each in runs.filter(pk__in=first.old_side.get("runs", []))}
            self.runs[first.pk] = first
        return first

    def frozen(self, members: Members) -> tuple[int | None, tuple[int, ...]]:
        """Return the run that froze a line, and the runs since with the configuration and commit of the new one."""
        runs = [self.runs[each.key] for each in members.pending]
        run = self.run
        again = [
            other.pk
            for other in runs
            if other.commit == run.commit and same_fingerprint(other.fingerprint, run.fingerprint)
        ]
        return members.since, tuple(again)


def _is_same(one: str, other: str) -> bool:
    one, other = both_known(one, other)
    return one == other


def _past(run: Run) -> LineRun:
    alert: Alert | None = getattr(run, "alert", None)
    if alert is not None and alert.kind == AlertKind.DRIFT:
        alert = None
    finished = (run.finished or run.created).timestamp()
    decision = decision_on(alert) if alert else None
    decided = _decision_time(alert) if alert and decision is not AlertDecision.OPEN else None
    return LineRun(
        run.pk,
        run.verdict,
        decision,
        finished,
        decided.timestamp() if decided else None,
        run.configuration_changed,
    )


def decision_on(alert: Alert) -> AlertDecision:
    """Return what became of an alert: a person's decision, or that its fresh trials didn't confirm it."""
    if alert.state not in OPEN_ALERTS:
        return _DECISIONS[alert.state]
    if alert.evidence == Evidence.NOT_CONFIRMED and alert.fresh:
        return AlertDecision.REJECTED
    return AlertDecision.OPEN


def _decision_time(alert: Alert) -> datetime:
    # Alerts of older releases don't know when they were decided.
    return alert.decided or alert.first_triaged or alert.created


_Found = tuple[Run, tuple[Pool, ...], tuple[Mapping[str, Reasons], ...]]


def _line(run: Run, runs: Sequence[Run]) -> _Found | None:
    """Return the runs of a line with what changed since each, and the newest of them; None if they are too few.

    Those count that have at least `LEAST_SHARE` of the run's scenarios with the same content.
    """
    if len(runs) < FEWEST_RUNS:
        return None
    reasons = parts_changed_since(run, runs)
    keys = _keys([run, *runs])
    run_keys = keys.get(run.pk, frozenset())
    usable = []
    for earlier, why in zip(runs, reasons, strict=True):
        same = (run_keys & keys.get(earlier.pk, frozenset())) - outcome_reasons(why).keys()
        if same and len(same) >= LEAST_SHARE * len(run_keys):
            usable.append((earlier, why))
    if len(usable) < FEWEST_RUNS:
        return None
    fresh = fresh_runs([each for each, _ in usable])
    pools = tuple(pool_of(each, fresh) for each, _ in usable)
    return usable[0][0], pools, tuple(why for _, why in usable)


def _keys(runs: Sequence[Run]) -> dict[int, frozenset[str]]:
    """Return the scenarios that each run has results of. One query."""
    rows = RunMeasure.objects.filter(run__in=runs, measure__layer="trial", measure__name="pass")
    by_run: dict[int, set[str]] = {}
    for run, key in rows.exclude(scenario=None).values_list("run", "scenario__key"):
        by_run.setdefault(run, set()).add(key)
    return {run: frozenset(keys) for run, keys in by_run.items()}


def _last(run: Run, history: _History, lines: Sequence[Members]) -> Run | None:
    """Return the newest run that didn't regress, of the branch, else of the default branch, else of any."""
    for members in lines:
        among = [*members.line, *([members.improved] if members.improved else [])]
        if chosen := newest_among(run, among):
            return chosen
    waiting = {member.key for members in lines for member in members.pending}
    return newest_among(run, [key for key in history.alike if key not in waiting])

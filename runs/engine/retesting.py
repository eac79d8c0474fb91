"""Run scenarios again that look worse, in the same run: the fresh trials alone decide.

Everything happens in the transaction that would close the run, under the lock of its launch, so that a batch is queued
once however many workers see the end of its trials.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from django.db import transaction
from django.db.models import F, Max

from evaluators.statistics.retest import (
    ERRORS,
    FIXED,
    IN_TURN,
    NONE,
    Passes,
    Planned,
    Retest,
    RetestKind,
    RetestOutcome,
    choose_fallen,
    decide_retest,
    is_fixed,
    lower_p,
    most_retested,
    plan_batch,
    plan_in_turn,
)
from runs.compare import retests
from runs.db import statements
from runs.models import Run, Trial
from runs.models.run import Preset, RunState, Trigger, has_too_many_errors
from runs.models.run_options import RunOptions
from runs.models.trial import TrialState
from runs.results import spending
from runs.results.rollups import write_measures
from runs.workers import wakeups

LEAST_RATE = 0.5
"""The share of its first trials from which on a named scenario is run again to see whether it is fixed."""


def may_retest(run: Run, options: RunOptions) -> bool:
    """Return whether scenarios of a run may be run again. No query with its suite, target and launch."""
    return (
        retests.asks_retest(options, run.suite, run.target)
        and run.trigger not in (Trigger.IMPORT, Trigger.CONFIRM)
        and run.launch.preset != Preset.CAUSES
    )


def retest(ended: Collection[int]) -> tuple[int, ...]:
    """Queue fresh trials in runs of a launch whose trials have ended; return the runs to close.

    Requires a transaction with the launch's lock. Reads the runs again.
    """
    closing: list[int] = []
    related = ("project", "launch", "suite", "target")
    for run in Run.objects.select_related(*related).filter(pk__in=ended).order_by("pk"):
        options = RunOptions.model_validate(run.options)
        if run.state == RunState.RUNNING and run.open:
            continue
        if not may_retest(run, options):
            closing.append(run.pk)
        elif options.retest_arms:
            closing += _retest_arms(run, options.retest_arms)
        elif not _retest_run(run, options):
            closing.append(run.pk)
    return tuple(dict.fromkeys(closing))


def _why_over(run: Run) -> str:
    """Return why a run gets no fresh trial any more, in a sentence; empty if it may."""
    if run.cancel_requested or run.state == RunState.CANCELLED:
        return "The run was cancelled."
    return spending.why_spent(run)


def _is_measured(run: Run) -> bool:
    """Return whether a run's first trials have ended, less than a third of them as errors."""
    return not run.cancelled and not has_too_many_errors(run.passed, run.failed, run.errors)


def _retest_run(run: Run, options: RunOptions) -> bool:
    """Settle a run's fresh trials, and queue the next ones; return whether any were queued."""
    known = retests.retests_of(run)
    over = _why_over(run)
    if retests.is_open(known):
        known, again = _settle(run, known, over)
        if again:
            return _queue(run, known, again)
    if not over and _is_measured(run):
        known, planned = _plan_next(run, options, known)
        if planned:
            return _queue(run, known, planned)
    return _queue(run, known, {})


def _queue(run: Run, known: Sequence[Retest], numbers: Mapping[str, int]) -> bool:
    stored = [each.to_json() for each in known]
    if stored != run.retests:
        Run.objects.filter(pk=run.pk).update(retests=stored)
    return bool(numbers) and add_trials(run, numbers, is_retest=True) > 0


def _settle(
    run: Run, known: Sequence[Retest], over: str, old: Mapping[str, Passes] | None = None
) -> tuple[list[Retest], dict[str, int]]:
    """Return a run's retests with what their fresh trials say, or the trials that run again because of errors.

    `old` are the fresh trials of the other arm, if that ran in turn.
    """
    fresh = retests.fresh_passes(run)
    again = {} if over else _replaced(run, known, fresh)
    if again:
        replaced = [replace(each, replaced=again.get(each.key, each.replaced)) for each in known]
        return replaced, again
    settled = []
    for each in known:
        if each.outcome is None:
            now = fresh.get(each.key, NONE)
            against = each.old if old is None else old[each.key]
            ran = now.trials if old is None else min(now.trials, against.trials)
            stopped = _why_fewer(run, each.key, over) if ran < each.planned else ""
            each = _decide(each, now, against, stopped)
        settled.append(each)
    return settled, {}


def _decide(retest: Retest, fresh: Passes, old: Passes, stopped: str) -> Retest:
    if retest.kind is RetestKind.FIX:
        outcome = RetestOutcome.FIXED if is_fixed(fresh, old) else RetestOutcome.NOT_DECIDED
        p = lower_p(old, fresh)
    else:
        outcome = decide_retest(fresh, old, retest.level)
        p = lower_p(fresh, old)
    return replace(
        retest,
        fresh=fresh,
        old=old,
        outcome=outcome,
        p=p if fresh.trials and old.trials else None,
        stopped=stopped,
    )


def _replaced(run: Run, known: Sequence[Retest], fresh: Mapping[str, Passes]) -> dict[str, int]:
    """Return how many trials of each scenario run again, because fresh ones ended as errors for the first time."""
    errors = Trial.objects.filter(run=run, is_retest=True, state=TrialState.FINISHED, outcome="error")
    failed = set(errors.values_list("scenario__key", flat=True))
    lacking = {
        each.key: each.planned - fresh.get(each.key, NONE).trials
        for each in known
        if each.outcome is None and not each.replaced and each.key in failed
    }
    return {key: n for key, n in lacking.items() if n > 0}


def _why_fewer(run: Run, key: str, over: str) -> str:
    """Return why fewer fresh trials of a scenario were decided than planned, in a sentence."""
    trials = Trial.objects.filter(run=run, is_retest=True, scenario__key=key)
    reasons = trials.filter(state=TrialState.CANCELLED).values_list("error", flat=True)
    if stopped := next(iter(reasons), None):
        return stopped
    return over or ("The run was cancelled." if stopped is not None else ERRORS)


def _plan_next(run: Run, options: RunOptions, known: list[Retest]) -> tuple[list[Retest], dict[str, int]]:
    """Return a run's retests with its next batch, and the trials to queue."""
    batch = max((each.batch for each in known), default=0)
    if any(each.outcome is not RetestOutcome.NAMED for each in known if each.batch == batch and batch):
        return known, {}
    first = retests.first_passes(run)
    is_first = not batch
    used = sum(each.planned for each in known)
    named = retests.named_since(run, options.baseline)
    new = _next_of_line(run, options, known, first, named, run.trials - used)
    if is_first:
        left = most_retested(run.trials) - used - sum(each.planned for each in new)
        new += _fixes(run, known, first, named, left)
    return [*known, *new], {each.key: each.planned for each in new if each.planned}


def _next_of_line(
    run: Run,
    options: RunOptions,
    known: Sequence[Retest],
    first: Mapping[str, Passes],
    named: Collection[str],
    left: int,
) -> list[Retest]:
    """Return the next batch of scenarios that look worse than the run's reference; `left`: fresh trials left."""
    done = {each.key for each in known}
    candidates = {key: each for key, each in first.items() if key not in named and key not in done}
    if not any(each.passed < each.trials for each in candidates.values()):
        return []
    # The line is found by the scenarios that a run has results of.
    write_measures(run)
    old = retests.old_passes(run, options.baseline)
    batch = 1 + max((each.batch for each in known), default=0)
    chosen = choose_fallen(candidates, old, run.pk)
    planned = plan_batch(chosen, old, left, is_first=batch == 1)
    return [_planned(each, RetestKind.LINE, batch, first, old) for each in planned]


def _planned(
    planned: Planned, kind: RetestKind, batch: int, first: Mapping[str, Passes], old: Mapping[str, Passes]
) -> Retest:
    outcome = None if planned.trials else RetestOutcome.TOO_FEW
    key = planned.key
    return Retest(key, kind, batch, first[key], old[key], planned.trials, planned.level, outcome=outcome)


def _fixes(
    run: Run, known: Sequence[Retest], first: Mapping[str, Passes], named: Mapping[str, int], left: int
) -> list[Retest]:
    """Return the named scenarios that pass again, as far as `left` fresh trials reach."""
    done = {each.key for each in known}
    passing = {
        key: run_id
        for key, run_id in named.items()
        if key in first and key not in done and first[key].rate >= LEAST_RATE
    }
    own_line = Run.objects.filter(pk__in=passing.values(), branch__in=run.line_branches)
    of_line = set() if run.is_experiment or not passing else set(own_line.values_list("pk", flat=True))
    passing = {key: run_id for key, run_id in passing.items() if run_id in of_line}
    if not passing:
        return []
    before = retests.passes_since(run, passing)
    return [
        Retest(key, RetestKind.FIX, 0, first[key], before.get(key, NONE), IN_TURN, FIXED)
        for key in sorted(passing)
    ][: max(0, left) // IN_TURN]


def _retest_arms(run: Run, keys: Sequence[int]) -> list[int]:
    """Settle and queue fresh trials of arms that run in turn; return those of them to close, none while any goes on."""
    related = ("project", "launch", "suite", "target")
    arms = {arm.pk: arm for arm in Run.objects.select_related(*related).filter(pk__in=keys)}
    if any(arm.is_open and arm.open for arm in arms.values()):
        # A cancelled arm doesn't wait for the others.
        return [run.pk] if run.cancel_requested else []
    ended = [pk for pk in keys if pk in arms and arms[pk].state == RunState.RUNNING]
    old, *others = [arms[pk] for pk in keys if pk in arms]
    goes_on = False
    for new in others:
        if new.pk in ended and (old.pk in ended or retests.is_open(retests.retests_of(new))):
            goes_on = _retest_beside(old, new) or goes_on
    return [] if goes_on else ended


def _retest_beside(old: Run, new: Run) -> bool:
    """Settle a later arm's fresh trials against the first one's, and queue the next; return whether any were queued."""
    known = retests.retests_of(new)
    over = _why_over(new) or _why_over(old) or ("" if old.is_open else f"Run {old.pk} ended before.")
    if retests.is_open(known):
        fresh = retests.fresh_passes(old)
        again_old = {} if over else _replaced(old, known, fresh)
        known, again = _settle(new, known, over, {each.key: fresh.get(each.key, NONE) for each in known})
        if again or again_old:
            undecided = [
                replace(each, outcome=None, replaced=max(again.get(each.key, 0), again_old.get(each.key, 0)))
                if each.key in again.keys() | again_old.keys()
                else each
                for each in known
            ]
            return bool(add_trials(old, again_old, is_retest=True) + _queue(new, undecided, again))
    if over or not (_is_measured(old) and _is_measured(new)):
        return _queue(new, known, {})
    batch = max((each.batch for each in known), default=0)
    if any(each.outcome is not RetestOutcome.NAMED for each in known if each.batch == batch):
        return _queue(new, known, {})
    before, after = retests.first_passes(old), retests.first_passes(new)
    done = {each.key for each in known}
    chosen = choose_fallen({key: each for key, each in after.items() if key not in done}, before, new.pk)
    planned = plan_in_turn(chosen)
    used = sum(each.planned for each in known)
    if batch and used + sum(each.trials for each in planned) > new.trials:
        planned = []
    rows = [_planned(each, RetestKind.IN_TURN, batch + 1, after, before) for each in planned]
    numbers = {each.key: each.trials for each in planned}
    ran = retests.fresh_passes(old)
    add_trials(old, {key: n for key, n in numbers.items() if key not in ran}, is_retest=True)
    return _queue(new, [*known, *rows], numbers)


def add_trials(run: Run, numbers: Mapping[str, int], *, is_retest: bool = False) -> int:
    """Queue this many further trials of scenarios, by key; return their number. Requires a transaction.

    They are a round of their own, which `Run.trials` doesn't count.
    """
    trials = Trial.objects.filter(run=run)
    following = 1 + max(trials.order_by().values_list("round", flat=True).distinct(), default=0)
    rows = (
        trials.order_by().values_list("scenario__key", "scenario", "scenario_version").annotate(Max("index"))
    )
    width = trials.order_by().values("scenario").distinct().count()
    places = dict(trials.filter(index=0).values_list("scenario", "position"))
    queued = {**statements.blank(Trial), "run": run.pk, "round": following, "is_retest": is_retest}
    new = [
        {
            **queued,
            "scenario": scenario,
            "scenario_version": version,
            "index": index,
            "position": index * width + places.get(scenario, 0),
        }
        for key, scenario, version, last in sorted(rows)
        for index in range(last + 1, last + 1 + numbers.get(key, 0))
    ]
    if new:
        statements.insert(Trial, sorted(new, key=lambda row: row["position"]))
        Run.objects.filter(pk=run.pk).update(open=F("open") + len(new))
        if not run.launch.held_by:
            transaction.on_commit(lambda: wakeups.wake_free_lanes(run.pk))
    return len(new)

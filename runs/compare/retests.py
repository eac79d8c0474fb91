"""Fresh trials of single scenarios within a run: their reference, their result, and which scenarios are named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from django.db.models import Count, Q

from evaluators.name_lists import list_names
from evaluators.statistics.comparability import parts_of
from evaluators.statistics.retest import NONE, Passes, Retest, RetestOutcome, describe_retest
from runs.compare.line import reference_of
from runs.models import Alert, Run, RunMeasure, Target, Trial
from runs.models.comparison import OF_SUITE, OPEN_ALERTS
from runs.models.run_options import RunOptions
from runs.models.target import IMPORTED
from runs.models.trial import TrialState
from runs.results.comparability import parts_changed_since
from scenarios.models import Suite

MOST_NAMED = 5
"""Scenarios, and targets, that a sentence names."""
REPEATING = frozenset(("mock", "replay", IMPORTED))
"""Providers whose fresh trials say nothing new: they start no agent."""


def asks_retest(options: RunOptions, suite: Suite, target: Target) -> bool:
    """Return whether scenarios that look worse run again in runs of a suite on a target. No query."""
    is_part = options.shard or options.lift or options.baseline_file
    return options.retest and suite.retests and target.provider not in REPEATING and not is_part


def retests_of(run: Run) -> list[Retest]:
    """Return a run's retests. No query."""
    return msgspec.convert(run.retests, list[Retest])


def retest_json(retest: Retest) -> dict[str, Any]:
    """Return a retest for REST and the command line, with its sentence."""
    return {**retest.to_json(), "sentence": describe_retest(retest)}


def describe_lost_together(runs: Iterable[Run]) -> list[str]:
    """Return a sentence for the scenarios that several of these runs' targets lost, such as `a broke on codex, claude.`

    Expects the runs' targets to be loaded. No query.
    """
    lost: defaultdict[tuple[int, str], dict[str, None]] = defaultdict(dict)
    for run in runs:
        for key in run.find_retested(RetestOutcome.NAMED):
            lost[run.suite_id, key][run.target.name] = None
    together: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for (_, key), targets in lost.items():
        if len(targets) > 1:
            together[tuple(targets)].append(key)
    return [
        f"{list_names(keys, MOST_NAMED)} broke on {list_names(targets, MOST_NAMED)}."
        for targets, keys in together.items()
    ]


def old_passes(run: Run, choice: str) -> dict[str, Passes]:
    """Return the reference trials for a run's retests, by scenario key; only scenarios with the same content.

    `choice` is its request's baseline. They are those of the runs of its line, else of its baseline. The run's own
    measures have to be stored.
    """
    side = reference_of(run, choice)
    if side.line:
        return _sum_passes(side.line, side.reasons)
    if side.baseline is None or side.baseline.is_unusable or side.baseline.is_unchecked:
        return {}
    return _sum_passes([side.baseline], parts_changed_since(run, [side.baseline]))


def _sum_passes(runs: Sequence[Run], reasons: Sequence[Mapping[str, Sequence[str]]]) -> dict[str, Passes]:
    changed = {run.pk: why for run, why in zip(runs, reasons, strict=True)}
    parts = parts_of("trial", "pass")
    rows = RunMeasure.objects.filter(run__in=changed, measure__layer="trial", measure__name="pass")
    summed: dict[str, Passes] = {}
    for run, key, n, mean in rows.exclude(scenario=None).values_list("run", "scenario__key", "n", "mean"):
        if not parts & set(changed[run].get(key, ())):
            summed[key] = summed.get(key, NONE).plus(round(n * mean), n)
    return {key: passes for key, passes in summed.items() if passes.trials}


def first_passes(run: Run) -> dict[str, Passes]:
    """Return the decided first trials of a run by scenario key. One query."""
    return _passes(Q(run=run, round=0)).get(run.pk, {})


def fresh_passes(run: Run) -> dict[str, Passes]:
    """Return the decided fresh trials of a run by scenario key. One query."""
    return _passes(Q(run=run, is_retest=True)).get(run.pk, {})


def _passes(which: Q) -> dict[int, dict[str, Passes]]:
    decided = Trial.objects.filter(which, state=TrialState.FINISHED, outcome__in=("pass", "fail")).order_by()
    rows = decided.values_list("run", "scenario__key").annotate(
        passed=Count("pk", filter=Q(outcome="pass")), n=Count("pk")
    )
    by_run: dict[int, dict[str, Passes]] = {}
    for run, key, passed, n in rows:
        by_run.setdefault(run, {})[key] = Passes(passed, n)
    return by_run


def named_since(run: Run, choice: str) -> dict[str, int]:
    """Return the scenarios that open alerts of a run's line name and nothing released, with the run that named each.

    `choice` is its request's baseline. One query without open alerts.
    """
    alike = {"suite": run.suite_id, "target": run.target_id, "model": run.model}
    alerts = Alert.objects.filter(
        **{f"run__{name}": value for name, value in alike.items()}, state__in=OPEN_ALERTS, kind__in=OF_SUITE
    )
    return dict(reference_of(run, choice).held) if alerts.exists() else {}


def passes_since(run: Run, since: Mapping[str, int]) -> dict[str, Passes]:
    """Return scenarios' trials from the run that named each to before a run: first and fresh ones, of the naming run
    those alone that named it. One query."""
    alike = {"run__suite": run.suite_id, "run__target": run.target_id, "run__model": run.model}
    decided = Trial.objects.filter(
        **alike,
        run__gte=min(since.values()),
        run__lt=run.pk,
        run__is_experiment=False,
        run__branch__in=run.line_branches,
        scenario__key__in=since,
        outcome__in=("pass", "fail"),
    )
    rows = (
        decided.filter(Q(round=0) | Q(is_retest=True))
        .order_by()
        .values_list("run", "scenario__key", "is_retest")
    )
    counted = rows.annotate(passed=Count("pk", filter=Q(outcome="pass")), n=Count("pk"))
    summed: dict[str, Passes] = {}
    for pk, key, is_retest, passed, n in counted:
        if pk > since[key] or (pk == since[key] and is_retest):
            summed[key] = summed.get(key, NONE).plus(passed, n)
    return summed


def is_open(retests: Iterable[Retest]) -> bool:
    """Return whether fresh trials of any of them still run."""
    return any(each.outcome is None for each in retests)

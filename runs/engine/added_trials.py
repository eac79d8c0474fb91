"""Queue further trials of an open run."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.db.models import F, Max

from runs.db import statements
from runs.models import Run, Trial
from runs.workers import wakeups


def add_trials(run: Run, numbers: Mapping[str, int], *, is_retest: bool = False) -> int:
    """Queue so many further trials of scenarios, by key; return their number. Requires a transaction.

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
            transaction.on_commit(lambda: wakeups.lanes(run.pk))
    return len(new)

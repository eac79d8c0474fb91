"""Give two compared runs further trials: a round of both that is prepared again, and counts in their comparison alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.contrib.auth.models import User
from django.db.models import Max

from evalhub.teams import audit
from evaluators.statistics.looks import first_size
from runs.db.transactions import write_transaction
from runs.engine.retesting import add_trials
from runs.engine.retrying import lock_closed, reopen
from runs.errors import NotRetryable, RequestError
from runs.models import Launch, Run, Trial
from runs.models.run import Preset, Trigger
from runs.workers import holds, wakeups


def extend_runs(
    runs: Sequence[Run], keys: Collection[str], trials: int, *, until_decided: bool = False, by: User | None
) -> Launch:
    """Queue trials of these scenarios in two closed runs, the compared one last, in turn.

    With `until_decided`, `trials` are the most of each scenario, added in looks. Raises `RequestError` if one of the
    runs can't run again.
    """
    base, new = runs
    first = first_size(trials) if until_decided else trials
    stop = {"first": first, "most": trials, "looks": [], "ended": False}
    with write_transaction():
        rounds: dict[int, int] = {}
        try:
            for run in sorted(runs, key=lambda run: run.pk):
                locked = lock_closed(run)
                reopen(locked)
                add_trials(locked, dict.fromkeys(keys, first))
                rounds[run.pk] = Trial.objects.filter(run=run).aggregate(last=Max("round"))["last"]
                audit.append_event(locked.project, by, "run.more", locked, trials=first * len(keys))
        except NotRetryable as error:
            raise RequestError(str(error)) from error
        holds.leave_to_workers(Launch.objects.filter(runs__in=rounds))
        wakeups.after_commit_prepare(list(rounds))
        return Launch.objects.create(
            project=new.project,
            by=by,
            trigger=Trigger.WEB,
            preset=Preset.MORE,
            about=new,
            request={"base": base.pk, "rounds": {str(pk): number for pk, number in rounds.items()}},
            stop=stop,
        )

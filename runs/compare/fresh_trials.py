"""Find the further trials of compared runs, which count together with theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.compare.differences import LABELS, fingerprint_differences
from runs.compare.measure_changes import PooledRuns
from runs.models import Run
from runs.models.run import RunState
from runs.results.counting import countings_of

OF_EVALHUB = frozenset((LABELS["evalhub"], LABELS["sandbox"]))
"""Parts of the fingerprint that may differ between pooled runs."""


@dataclass(frozen=True)
class FreshRun:
    """A run with further trials of another run's configuration."""

    run: Run
    changed: tuple[str, ...]
    """The parts of the fingerprint that changed meanwhile; only without any are the trials pooled."""

    @property
    def is_pooled(self) -> bool:
        return self.run.state == RunState.FINISHED and not self.run.error and not self.changed

    @property
    def done(self) -> int:
        return self.run.trials - self.run.open

    @property
    def note(self) -> str:
        """Return why its trials don't count; empty if they do."""
        if self.run.is_open:
            return f"{self.done} of {self.run.trials} trials done"
        if self.run.error:
            return "could not start"
        if self.run.state == RunState.CANCELLED:
            return "cancelled"
        return f"not pooled: {', '.join(self.changed)} changed" if self.changed else ""


def fresh_runs(runs: Sequence[Run]) -> list[FreshRun]:
    """Return the runs with further trials of these runs, oldest first, without those compared themselves. One query."""
    of = {run.pk: run for run in runs}
    fresh = Run.objects.filter(more_of__in=of).exclude(pk__in=of).select_related("guidance").order_by("pk")
    return [FreshRun(run, _find_changes(of[run.more_of_id or 0], run)) for run in fresh]


def _find_changes(run: Run, fresh: Run) -> tuple[str, ...]:
    # A run that isn't prepared has no fingerprint yet.
    return () if fresh.is_open or fresh.error else changed_meanwhile(run, fresh)


def changed_meanwhile(run: Run, fresh: Run) -> tuple[str, ...]:
    """Return the parts of the fingerprint in which further trials differ from their run, so that they don't count."""
    differing = (each.label for each in fingerprint_differences(run, fresh))
    changed = [label for label in dict.fromkeys(differing) if label not in OF_EVALHUB]
    if not set(countings_of(fresh.counting)) <= set(countings_of(run.counting)):
        changed.append("counting of commands")
    return tuple(changed)


def pool_of(run: Run, fresh: Sequence[FreshRun]) -> PooledRuns:
    """Return a run and its further trials that count."""
    return PooledRuns(
        run, tuple(each.run.pk for each in fresh if each.is_pooled and each.run.more_of_id == run.pk)
    )

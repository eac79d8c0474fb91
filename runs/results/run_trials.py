"""Read the trials of a run and of its baseline for the run's page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import QuerySet

from runs.models import Run, Trial
from runs.models.trial import TrialState
from runs.results.digests import Digest, DigestedTrial, by_key, digest_of, digests_of
from runs.results.subcommand_totals import SubcommandTotal


@dataclass(frozen=True)
class RunTrials:
    """A run's digest, and its baseline's outcomes by scenario."""

    digest: Digest
    before: Mapping[str, list[str]] = field(default_factory=dict)
    kept: dict[int, Digest] = field(default_factory=dict, compare=False, repr=False)
    """All digests read, by run."""
    subcommands_before: list[SubcommandTotal] | None = None
    """The baseline's totals by subcommand; None if its digest lacks them."""
    outcomes: Mapping[str, list[str]] = field(default_factory=dict)
    """The run's finished outcomes by scenario, if it has a baseline."""

    @property
    def trials(self) -> list[DigestedTrial]:
        """Return the run's trials in execution order."""
        return self.digest.trials


def trials_of(run: Run, also: Iterable[int] = ()) -> RunTrials:
    """Return a run's trials and its baseline's outcomes, and load the digests of `also`.

    One query if both are closed.
    """
    keys = {run.pk, *([run.baseline_id] if run.baseline_id else []), *also}
    digests = digests_of(sorted(keys))
    digest = digests[run.pk] if not run.is_open and run.pk in digests else digest_of(run)
    if not run.baseline_id:
        return RunTrials(digest, kept=digests)
    baseline = digests.get(run.baseline_id)
    # Runs closed by older releases have no digest.
    before = baseline.outcomes if baseline else by_key(_outcomes(run.baseline_id))
    return RunTrials(digest, before, digests, baseline.subcommands if baseline else None, digest.outcomes)


def _outcomes(run: int) -> QuerySet[Trial, tuple[str, str]]:
    ended = Trial.objects.filter(run=run, round=0, state=TrialState.FINISHED).order_by("position", "pk")
    return ended.values_list("scenario__key", "outcome")

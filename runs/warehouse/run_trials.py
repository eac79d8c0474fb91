"""The trials of a run and of its baseline, for everything that its page says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import QuerySet

from runs.models import Run, Trial
from runs.models.trial import TrialState
from runs.warehouse.digests import Digest, DigestedTrial, by_key, digest_of, digests_of
from runs.warehouse.subcommand_totals import SubcommandTotal


@dataclass(frozen=True)
class RunTrials:
    """What a run's trials come to, and the outcomes of its baseline's that ended, by scenario."""

    digest: Digest
    before: Mapping[str, list[str]] = field(default_factory=dict)
    kept: dict[int, Digest] = field(default_factory=dict, compare=False, repr=False)
    """Digests by run, as they were read for it."""
    subcommands_before: list[SubcommandTotal] | None = None
    """The baseline's; None where its digest does not tell them."""
    outcomes: Mapping[str, list[str]] = field(default_factory=dict)
    """The outcomes of the run's own trials that ended, by scenario, where it has a baseline."""

    @property
    def trials(self) -> list[DigestedTrial]:
        """In their order of work."""
        return self.digest.trials


def trials_of(run: Run, also: Iterable[int] = ()) -> RunTrials:
    """Return the trials of a run and what its baseline's came to. One query where both are closed.

    With them come the digests of the runs in `also`, for whoever asks for those next.
    """
    wanted = {run.pk, *([run.baseline_id] if run.baseline_id else []), *also}
    kept = digests_of(sorted(wanted))
    digest = kept[run.pk] if not run.is_open and run.pk in kept else digest_of(run.pk)
    if not run.baseline_id:
        return RunTrials(digest, kept=kept)
    baseline = kept.get(run.baseline_id)
    # One that was closed by an evalhub that kept no digests has none.
    before = baseline.outcomes if baseline else by_key(_outcomes(run.baseline_id))
    return RunTrials(digest, before, kept, baseline.subcommands if baseline else None, digest.outcomes)


def _outcomes(run: int) -> QuerySet[Trial, tuple[str, str]]:
    ended = Trial.objects.filter(run=run, state=TrialState.FINISHED).order_by("position", "pk")
    return ended.values_list("scenario__key", "outcome")

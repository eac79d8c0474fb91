"""The trials of a run and of its baseline, for everything that its page says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import QuerySet

from runs.models import Run, Trial
from runs.models.trial import TrialState
from runs.summaries.digests import Digest, DigestedTrial, digest_of
from runs.summaries.kept_digests import by_key, contents_of, kept_digest, outcomes_by_key, subcommand_totals
from runs.summaries.subcommands import SubcommandTotal


@dataclass(frozen=True)
class RunTrials:
    """What a run's trials come to, and the outcomes of its baseline's that ended, by scenario."""

    digest: Digest
    before: Mapping[str, list[str]] = field(default_factory=dict)
    kept: dict[int, bytes] = field(default_factory=dict, compare=False, repr=False)
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
    kept = contents_of(tuple(sorted(wanted)))
    closed = not run.is_open and run.pk in kept
    digest = kept_digest(kept[run.pk]) if closed else digest_of(run.pk)
    if not run.baseline_id:
        return RunTrials(digest, kept=kept)
    content = kept.get(run.baseline_id)
    told = None if content is None else subcommand_totals(content)
    before = _before(run.baseline_id, kept)
    return RunTrials(digest, before, kept, told, outcomes_by_key(kept[run.pk]) if closed else _ended(digest))


def _ended(digest: Digest) -> dict[str, list[str]]:
    return by_key((trial.key, trial.outcome) for trial in digest.trials if trial.is_finished)


def _before(baseline: int, kept: dict[int, bytes]) -> dict[str, list[str]]:
    # One that was closed by an evalhub that kept no digests has none.
    return outcomes_by_key(kept[baseline]) if baseline in kept else by_key(_outcomes(baseline))


def _outcomes(run: int) -> QuerySet[Trial, tuple[str, str]]:
    ended = Trial.objects.filter(run=run, state=TrialState.FINISHED).order_by("position", "pk")
    return ended.values_list("scenario__key", "outcome")

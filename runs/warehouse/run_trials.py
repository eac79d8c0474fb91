"""The trials of a run and of its baseline, for everything that its page says of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import QuerySet

from evalhub.web.prepared import prepared
from runs.models import Run, Trial
from runs.models.trial import TrialState
from runs.summaries.digests import Digest, DigestedTrial, digest_of
from runs.summaries.kept_digests import contents_of, ended_trials, kept_digest, subcommand_totals
from runs.summaries.subcommands import SubcommandTotal


@dataclass(frozen=True)
class RunTrials:
    """What a run's trials come to, and the outcomes of its baseline's that ended, by scenario."""

    digest: Digest
    before: dict[str, list[str]] = field(default_factory=dict)
    kept: dict[int, bytes] = field(default_factory=dict, compare=False, repr=False)
    """Digests by run, as they were read for it."""
    subcommands_before: list[SubcommandTotal] | None = None
    """The baseline's; None where its digest does not tell them."""

    @property
    def trials(self) -> list[DigestedTrial]:
        """In their order of work."""
        return self.digest.trials

    @property
    def outcomes(self) -> dict[str, list[str]]:
        """The outcomes of the run's trials that ended, by scenario."""
        return _by_key((trial.key, trial.outcome) for trial in self.trials if trial.is_finished)


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
    return RunTrials(digest, _before(run.baseline_id, kept), kept, told)


def _before(baseline: int, kept: dict[int, bytes]) -> dict[str, list[str]]:
    if baseline not in kept:
        # Closed by an evalhub that kept no digests.
        return _by_key(_outcomes(baseline))
    return _by_key((trial.key, trial.outcome) for trial in ended_trials(kept[baseline]))


@prepared
def _outcomes(run: int) -> QuerySet[Trial, tuple[str, str]]:
    ended = Trial.objects.filter(run=run, state=TrialState.FINISHED).order_by("position", "pk")
    return ended.values_list("scenario__key", "outcome")


def _by_key(outcomes: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, outcome in outcomes:
        found.setdefault(key, []).append(outcome)
    return found

"""Read the trials of a run and of its baseline for the run's page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from runs.models import Run
from runs.results.digests import Digest, DigestedTrial, digest_of, digests_of


@dataclass(frozen=True)
class RunTrials:
    """A run's digest, and its baseline's."""

    digest: Digest
    baseline: Digest | None = None

    @property
    def trials(self) -> list[DigestedTrial]:
        """Return the run's trials in execution order."""
        return self.digest.trials

    @cached_property
    def before(self) -> Mapping[str, list[str]]:
        """The baseline's outcomes by scenario key; none without a baseline."""
        return self.baseline.outcomes if self.baseline else {}

    @cached_property
    def outcomes(self) -> Mapping[str, list[str]]:
        """The run's finished outcomes by scenario, if it has a baseline."""
        return self.digest.outcomes if self.baseline else {}


def trials_of(run: Run) -> RunTrials:
    """Return a run's trials and those of its baseline. At most seven queries."""
    baseline = digests_of([run.baseline_id])[run.baseline_id] if run.baseline_id else None
    return RunTrials(digest_of(run), baseline)

"""Show the scenarios of a run that ran again."""

from __future__ import annotations

from dataclasses import dataclass

from evalhub.web.states import sign_of_state
from evaluators.statistics.retest import Retest, describe_reference, describe_retest
from runs.compare.retests import retests_of
from runs.models import Run


@dataclass(frozen=True)
class ShownRetest:
    """One row of the table."""

    retest: Retest

    @property
    def sentence(self) -> str:
        said = describe_retest(self.retest)
        return said[0].upper() + said[1:]

    @property
    def look(self) -> str:
        return sign_of_state(self.retest.outcome or "")[1] or "muted"

    @property
    def note(self) -> str:
        """That there are few earlier trials, and why fewer ran than planned; empty if neither."""
        return " ".join(filter(None, (describe_reference(self.retest), self.retest.stopped)))


def shown_retests(run: Run) -> list[ShownRetest]:
    """Return what the run's page shows of scenarios that ran again. No query."""
    return [ShownRetest(each) for each in retests_of(run)]

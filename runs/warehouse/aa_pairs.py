"""How much of a suite's results is chance: pairs of runs of the same fingerprint (A/A)."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q, Sum

from evalhub.web.numbers import counted
from evaluators.measure_change import ChangeVerdict
from evaluators.statistics import wilson
from runs.models import Run
from runs.models.run import MOSTLY_MEASURED

ALARMS = (ChangeVerdict.REGRESSED, ChangeVerdict.IMPROVED)


@dataclass(frozen=True)
class AaRates:
    """What differed although nothing changed."""

    pairs: int = 0
    scenarios: int = 0
    differing: int = 0
    alarms: int = 0
    """Comparisons that read Regressed or Improved."""

    @property
    def sentence(self) -> str:
        """Say both shares with their number and 95 % interval; empty without pairs."""
        if not self.pairs:
            return ""
        return (
            f"In {counted(self.pairs, 'A/A pair')} (runs of the same fingerprint), "
            f"{_share(self.differing, self.scenarios)} scenario outcomes differed, and "
            f"{_share(self.alarms, self.pairs)} comparisons read Regressed or Improved."
        )


def _share(found: int, of: int) -> str:
    interval = wilson(found, of)
    low, high = (f"{share * 100:.0f}" for share in (interval.lower, interval.upper))
    return f"{found} of {of} ({found / (of or 1):.0%}, 95 % interval {low} to {high} %)"


def aa_rates(suite: int, target: int) -> AaRates:
    """Return the rates of a suite's A/A pairs on a target. One query, by index."""
    runs = Run.objects.filter(MOSTLY_MEASURED, suite=suite, target=target, aa_scenarios__isnull=False)
    found = runs.aggregate(
        pairs=Count("pk"),
        scenarios=Sum("aa_scenarios", default=0),
        differing=Sum("aa_differing", default=0),
        alarms=Count("pk", filter=Q(verdict__in=ALARMS)),
    )
    return AaRates(**found)

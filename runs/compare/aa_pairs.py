"""How much of a suite's results is chance: pairs of runs of the same fingerprint (A/A)."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, F, Q, Sum

from evalhub.lib.numbers import counted
from evaluators.statistics.descriptive import Interval, wilson
from evaluators.statistics.measure_change import ChangeVerdict
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
    independent: float = 0.0
    """Pairs by their effective number (Kish 1965), with those of one baseline as one: they share its luck."""

    @property
    def sentence(self) -> str:
        """Say both shares with their number and 95 % interval; empty without pairs."""
        if not self.pairs:
            return ""
        shared = (
            f" Pairs of one baseline share its luck, so the intervals count {self.independent:.1f} pairs."
            if self.independent < self.pairs
            else ""
        )
        return (
            f"In {counted(self.pairs, 'A/A pair')} (runs of the same fingerprint), "
            f"{self._share(self.differing, self.scenarios)} scenario outcomes differed, and "
            f"{self._share(self.alarms, self.pairs)} comparisons read Regressed or Improved.{shared}"
        )

    def interval(self, count: int, of: int) -> Interval:
        """Return the 95 % interval of a share over all pairs, at their effective number."""
        effective = self.independent / self.pairs
        return wilson(count * effective, of * effective)

    def _share(self, count: int, of: int) -> str:
        interval = self.interval(count, of)
        low, high = (f"{share * 100:.0f}" for share in (interval.lower, interval.upper))
        return f"{count} of {of} ({count / (of or 1):.0%}, 95 % interval {low} to {high} %)"


def aa_rates(suite: int, target: int) -> AaRates:
    """Return the rates of a suite's A/A pairs on a target. One query, by index."""
    runs = Run.objects.filter(MOSTLY_MEASURED, suite=suite, target=target, aa_scenarios__isnull=False)
    by_baseline = (
        runs.order_by()
        .values("baseline")
        .annotate(
            own=Count("pk"),
            own_scenarios=Sum("aa_scenarios"),
            own_differing=Sum("aa_differing"),
            own_alarms=Count("pk", filter=Q(verdict__in=ALARMS)),
        )
    )
    sums = by_baseline.aggregate(
        pairs=Sum("own", default=0),
        scenarios=Sum("own_scenarios", default=0),
        differing=Sum("own_differing", default=0),
        alarms=Sum("own_alarms", default=0),
        squares=Sum(F("own") * F("own"), default=0),
    )
    squares = sums.pop("squares")
    return AaRates(**sums, independent=sums["pairs"] ** 2 / squares if squares else 0.0)

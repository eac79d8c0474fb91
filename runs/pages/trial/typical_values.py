"""Compute a scenario's typical values: medians of its recent trials."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import msgspec
from django.db.models import F, QuerySet, TextField
from django.db.models.functions import Cast
from msgspec import Struct

from runs.models import Run, Trial
from runs.models.run import MAINLINE
from runs.models.trial import TrialState

LENGTH = 20
"""Trials whose median is taken, and runs that are looked through for them."""
RATES = ("first_try_success_rate", "error_rate", "retry_rate", "iteration_ratio")
COUNTS = ("help_seeking", "total_commands")


class _Interaction(Struct, gc=False):
    """What is read of a trial's layer 1; the rest of its JSON is skipped."""

    available: bool = False
    source: str = "none"
    first_try_success_rate: float | None = None
    error_rate: float | None = None
    retry_rate: float | None = None
    iteration_ratio: float | None = None
    help_seeking: float | None = None
    total_commands: float | None = None


class _Detail(Struct, gc=False):
    interaction: _Interaction | None = None


_detail = msgspec.json.Decoder(_Detail)


class Median(NamedTuple):
    """The middle of the values of some trials; None where none was measured."""

    value: float | None
    n: int
    """Trials in which it was measured."""


@dataclass(frozen=True)
class Usual:
    """The values of layer 1's measures in a scenario's earlier trials."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def of(self, name: str) -> Median:
        """Return a measure's median."""
        values = self.values.get(name)
        return Median(median(values), len(values)) if values else Median(None, 0)


def usual(trial: Trial) -> Usual:
    """Return how a scenario's last twenty trials before this one went, of its target and the mainline.

    Errors are none of them. One query; expects the trial's run to be loaded.
    """
    return Usual(_values(text for (text,) in _earlier(trial)))


def _values(details: Iterable[str]) -> dict[str, list[float]]:
    told = [_detail.decode(text).interaction for text in details]
    values = {name: [getattr(each, name) for each in told if each and each.available] for name in RATES}
    values |= {
        name: [getattr(each, name) for each in told if each and each.source != "none"] for name in COUNTS
    }
    return {name: [value for value in found if value is not None] for name, found in values.items()}


def _earlier(trial: Trial) -> QuerySet[Trial, tuple[str]]:
    """Return the details of the last trials, in no order.

    They are found by their runs in an index that holds all it takes. In the order of their keys SQLite would go
    through all trials that the scenario ever had, those of other targets and branches as well: hence the sum.
    """
    run = trial.run
    before = Run.objects.filter(suite=run.suite_id, target=run.target_id, branch__in=MAINLINE, pk__lte=run.pk)
    ended = Trial.objects.filter(
        run__in=before.order_by("-pk").values("pk")[:LENGTH],
        scenario=trial.scenario_id,
        state=TrialState.FINISHED,
        outcome__in=("pass", "fail"),
    )
    earlier = ended.annotate(place=F("pk") + 0).filter(place__lt=trial.pk).order_by("-place")
    last = Trial.objects.filter(pk__in=earlier.values("pk")[:LENGTH]).order_by()
    return last.values_list(Cast("detail", TextField()))

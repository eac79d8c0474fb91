"""Compute a scenario's typical values: medians of its recent trials."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

import msgspec
from django.db.models import F, QuerySet, TextField
from django.db.models.functions import Cast
from msgspec import Struct

from runs.models import Run, Trial
from runs.models.run import MAINLINE
from runs.models.trial import TrialState

LENGTH = 20
"""Most trials in a median, and most runs searched for them."""
RATES = ("first_try_success_rate", "error_rate", "retry_rate", "iteration_ratio")
COUNTS = ("help_seeking", "total_commands")


class _Interaction(Struct, gc=False):
    """The fields read from a trial's layer 1; the rest of its JSON is skipped."""

    available: bool = False
    source: str = "none"
    rules: int = 1
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
    """Median of a measure over trials; None if not measured."""

    value: float | None
    n: int
    """Number of trials that measured it."""


@dataclass(frozen=True)
class TypicalValues:
    """Layer 1's measures in a scenario's earlier trials."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def of(self, name: str) -> Median:
        """Return a measure's median."""
        values = self.values.get(name)
        return Median(median(values), len(values)) if values else Median(None, 0)


def typical_values(trial: Trial) -> TypicalValues:
    """Return the values of a scenario's last twenty trials before this one, on its target and the mainline.

    Without errors. One query; expects the trial's run to be loaded.
    """
    interaction: dict[str, Any] = trial.detail.get("interaction") or {}
    alike = (interaction.get("rules", 1), _kind(interaction.get("source", "none")))
    return TypicalValues(_values((text for (text,) in _earlier(trial)), alike))


def _kind(source: str) -> str:
    """Return whether ends are recorded, estimated from text, or reported."""
    return source if source in ("recorded", "transcript") else ""


def _values(details: Iterable[str], alike: tuple[int, str]) -> dict[str, list[float]]:
    """Return the values of the trials whose commands are counted by these rules, from this kind of source."""
    every = (_detail.decode(text).interaction for text in details)
    read = [each for each in every if each and (each.rules, _kind(each.source)) == alike]
    values = {name: [getattr(each, name) for each in read if each and each.available] for name in RATES}
    values |= {
        name: [getattr(each, name) for each in read if each and each.source != "none"] for name in COUNTS
    }
    return {name: [value for value in each if value is not None] for name, each in values.items()}


def _earlier(trial: Trial) -> QuerySet[Trial, tuple[str]]:
    """Return the details of the last trials, unordered.

    The trials are selected by their runs, from an index with all needed columns. Ordered by key, SQLite would scan
    all trials of the scenario, also those of other targets and branches; the sum prevents that.
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

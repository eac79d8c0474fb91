"""Compare the tool's subcommands with the baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import QuerySet

from runs.models import Run, SubcommandMeasure
from runs.results.counting import FEWEST_KNOWN, counts_alike
from runs.results.run_trials import RunTrials
from runs.results.subcommand_totals import SubcommandTotal

FEWEST_CALLS = 5
"""Fewest calls for a meaningful rate."""


@dataclass(frozen=True)
class SubcommandRow:
    """One subcommand of the tool; rates are per call, those of errors and first tries per known end."""

    name: str
    calls: int
    failed: int
    """Failed calls."""
    unknown: int
    """Calls whose end is unknown."""
    errors: float | None
    """None if fewer than `FEWEST_KNOWN` ends are known."""
    change: float | None
    """Difference of the error rate to the baseline's over shared scenarios; None if that made no calls."""
    first_tries: float | None
    """None if fewer than `FEWEST_KNOWN` ends are known."""
    retries: float
    helps: int
    tries: float | None
    """Median tries until success."""
    message: str
    """Its most frequent error message."""
    messages: int
    """How often that message occurred."""
    few: bool
    heat: int
    """1 to 5: the share of failing calls, in steps of 10 %."""

    @property
    def known(self) -> int:
        """Return how many ends are known."""
        return self.calls - self.unknown


def subcommands(run: Run, read: RunTrials) -> list[SubcommandRow]:
    """Return the run's subcommands, most failing first.

    One query with a baseline.
    """
    changes = _changes(run, read)
    rows = [_row(each, changes.get(each.name)) for each in read.digest.subcommands]
    return sorted(rows, key=lambda row: (row.few, -(row.errors or 0.0), row.name))


def _changes(run: Run, read: RunTrials) -> dict[str, float]:
    """Return the error rates' changes from the baseline over the scenarios of both. One query with a baseline."""
    if not run.baseline_id or not (run.baseline is None or counts_alike(run.counting, run.baseline.counting)):
        return {}
    return _changes_of_shared(run.pk, run.baseline_id, read.before.keys() & read.outcomes.keys())


def _differences(
    after: Mapping[str, tuple[int, int]], before: Mapping[str, tuple[int, int]]
) -> dict[str, float]:
    shares = ((name, _share(*after[name]), _share(*before[name])) for name in after.keys() & before.keys())
    return {name: new - old for name, new, old in shares if new is not None and old is not None}


def _changes_of_shared(run: int, baseline: int, scenarios: Collection[str]) -> dict[str, float]:
    """Return the error rates' changes over the scenarios of both runs. One query."""
    counts: dict[tuple[int, str], tuple[int, int]] = {}
    for owner, name, scenario, calls, errors, unknown in _of_scenarios((run, baseline)):
        if scenario in scenarios:
            before = counts.get((owner, name), (0, 0))
            counts[owner, name] = (before[0] + calls - unknown, before[1] + errors)
    after, before_it = (
        {name: each for (owner, name), each in counts.items() if owner == key} for key in (run, baseline)
    )
    return _differences(after, before_it)


def _share(known: int, errors: int) -> float | None:
    """Return the share of failed calls; None if too few ends are known."""
    return errors / known if known >= FEWEST_KNOWN else None


class CallColumns(NamedTuple):
    """Which further columns have values; empty ones are hidden."""

    tries: bool
    messages: bool


def call_columns(rows: Sequence[SubcommandRow]) -> CallColumns:
    """Return the columns that have values."""
    return CallColumns(any(row.tries is not None for row in rows), any(row.message for row in rows))


def total_row(rows: Sequence[SubcommandRow]) -> SubcommandRow | None:
    """Return the total of several subcommands, without tries; None for fewer than two."""
    calls, unknown = sum(row.calls for row in rows), sum(row.unknown for row in rows)
    if len(rows) < 2 or not calls:
        return None
    share = _share(calls - unknown, sum(row.failed for row in rows))
    # Rows without a rate have too few calls to matter.
    tried = [row for row in rows if row.first_tries is not None]
    known = sum(row.known for row in tried)
    return SubcommandRow(
        name="",
        calls=calls,
        failed=sum(row.failed for row in rows),
        unknown=unknown,
        errors=share,
        change=None,
        first_tries=sum((row.first_tries or 0.0) * row.known for row in tried) / known if known else None,
        retries=sum(row.retries * row.calls for row in rows) / calls,
        helps=sum(row.helps for row in rows),
        tries=None,
        message="",
        messages=0,
        few=calls < FEWEST_CALLS,
        heat=_heat(share),
    )


def _of_scenarios(runs: tuple[int, ...]) -> QuerySet[SubcommandMeasure, Any]:
    measures = SubcommandMeasure.objects.filter(run__in=runs, scenario__isnull=False)
    return measures.values_list("run", "subcommand", "scenario__key", "calls", "errors", "unknown")


def _row(total: SubcommandTotal, change: float | None) -> SubcommandRow:
    calls = total.calls or 1
    known = total.calls - total.unknown
    share = _share(known, total.errors)
    return SubcommandRow(
        name=total.name,
        calls=total.calls,
        failed=total.errors,
        unknown=total.unknown,
        errors=share,
        change=change,
        first_tries=total.first_tries / known if known >= FEWEST_KNOWN else None,
        retries=total.retries_after_failure / calls,
        helps=total.helps,
        tries=total.tries,
        message=total.message,
        messages=total.messages,
        few=total.calls < FEWEST_CALLS,
        heat=_heat(share),
    )


def _heat(share: float | None) -> int:
    return min(5, 1 + int((share or 0.0) * 10))

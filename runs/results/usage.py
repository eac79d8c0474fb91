"""How agents used the tool's subcommands and flags, over the newest runs that match a filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalhub.teams.models import Project
from evaluators.statistics.descriptive import Interval, shrunken_rates, wilson
from evaluators.tool_use.flag_confusion import ConfusionKind
from runs.models import FlagConfusion, SubcommandMeasure
from runs.models.run import RunState
from runs.results.counting import (
    ESTIMATED,
    FEWEST_KNOWN,
    counts_alike,
    counts_unknown_as_success,
    ends_of_run,
)
from runs.results.run_filters import RunListFilters, with_tag_lines
from runs.results.run_list import runs_of
from runs.results.subcommand_totals import median_of

MOST_RUNS = 100
"""Newest matching runs that are summed."""
FEWEST_CALLS = 5
"""Fewer calls say little: the page marks them."""


@dataclass
class SubcommandCalls:
    """Calls of one subcommand over runs."""

    calls: int = 0
    errors: int = 0
    first_tries: int = 0
    retries_after_failure: int = 0
    helps: int = 0
    helps_before: int = 0
    unknown: int = 0
    """Calls whose end is unknown."""
    tries: Counter[int] = field(default_factory=Counter)
    failing_run: int | None = None
    """The newest run in which a call failed."""

    @property
    def known(self) -> int:
        """Calls whose end is known."""
        return self.calls - self.unknown

    def rate(self, hits: int) -> float:
        """Return a share of all calls."""
        return hits / self.calls if self.calls else 0.0

    def known_rate(self, hits: int) -> float | None:
        """Return a share of the calls whose end is known; None if none is."""
        return hits / self.known if self.known else None


@dataclass(frozen=True)
class UsageRow:
    """One subcommand as the page shows it; rates are per call, those of errors and first tries per known end."""

    name: str
    counts: SubcommandCalls
    errors: Interval
    """Of the error rate, 95 % (Wilson)."""
    shrunken: float
    """The error rate drawn towards that of all subcommands: what the colour shows."""
    before: SubcommandCalls | None
    """In the baselines of these runs; None if they never called it."""

    @property
    def error_rate(self) -> float | None:
        """None if no end is known."""
        return self.counts.known_rate(self.counts.errors)

    @property
    def first_try(self) -> float | None:
        """None if no end is known."""
        return self.counts.known_rate(self.counts.first_tries)

    @property
    def has_rates(self) -> bool:
        """Return whether enough ends are known for a rate."""
        return self.counts.known >= FEWEST_KNOWN

    @property
    def change(self) -> float | None:
        """The difference of the error rate to the baselines'."""
        before = self.before.known_rate(self.before.errors) if self.before else None
        return None if before is None or self.error_rate is None else self.error_rate - before

    @property
    def heat(self) -> int:
        """1 to 5: the shrunken error rate in steps of 10 %."""
        return min(5, 1 + int(self.shrunken * 10))

    @property
    def is_few(self) -> bool:
        return self.counts.calls < FEWEST_CALLS

    @property
    def median_tries(self) -> float | None:
        """The median number of attempts until success; None if it never succeeded."""
        return median_of(self.counts.tries)


@dataclass(frozen=True)
class ConfusionRow:
    """A flag or argument that agents confused, over runs."""

    subcommand: str
    kind: ConfusionKind
    typed: str
    meant: str
    calls: int
    trials: int
    runs: int
    newest_run: int


@dataclass(frozen=True)
class SubcommandUsage:
    """Subcommands, those that fail most first, and confusions, the most frequent first."""

    runs: int
    subcommands: list[UsageRow]
    confusions: list[ConfusionRow]
    estimated: int = 0
    """Runs with ends that are estimated from text."""
    not_compared: int = 0
    """Runs whose baseline counts commands differently, so that it is left out."""


def usage(project: Project, filters: RunListFilters, *, compare: bool = False) -> SubcommandUsage:
    """Return the usage in the newest closed runs that match; with `compare`, also that of their baselines. Three queries."""
    closed = with_tag_lines(runs_of(project), filters).filter(filters.condition(), state=RunState.FINISHED)
    columns = ("pk", "baseline_id", "counting", "baseline__counting")
    read = list(closed.order_by("-pk").values_list(*columns)[:MOST_RUNS])
    newest = {pk: baseline for pk, baseline, _, _ in read}
    based = [row for row in read if row[1] and compare]
    baselines = {row[1] for row in based if counts_alike(row[2], row[3])}
    fields = (*_SUMMED, "tries")
    rows = SubcommandMeasure.objects.filter(run__in={*newest, *baselines}, scenario=None)
    found = list(rows.order_by("run_id").values("run", "subcommand", *fields))
    older = {row[at] for row in read for at in (0, 1) if counts_unknown_as_success(row[at + 2])}
    for row in found:
        row["unknown"] = 0 if row["run"] in older else row["unknown"]
    now = _sum_by_subcommand(row for row in found if row["run"] in newest)
    before = _sum_by_subcommand(row for row in found if row["run"] in baselines)
    return SubcommandUsage(
        len(newest),
        _rows(now, before),
        _confusions(newest),
        sum(ESTIMATED in ends_of_run(row[2]) for row in read),
        sum(not counts_alike(row[2], row[3]) for row in based),
    )


_SUMMED = ("calls", "errors", "first_tries", "retries_after_failure", "helps", "helps_before", "unknown")


def _sum_by_subcommand(rows: Iterable[Mapping[str, Any]]) -> dict[str, SubcommandCalls]:
    found: dict[str, SubcommandCalls] = {}
    for row in rows:
        counts = found.setdefault(row["subcommand"], SubcommandCalls())
        for name in _SUMMED:
            setattr(counts, name, getattr(counts, name) + row[name])
        counts.tries.update({int(number): often for number, often in row["tries"].items()})
        if row["errors"]:
            counts.failing_run = row["run"]
    return found


def _rows(now: Mapping[str, SubcommandCalls], before: Mapping[str, SubcommandCalls]) -> list[UsageRow]:
    names = list(now)
    shrunken = shrunken_rates([(now[name].errors, now[name].known) for name in names])
    rows = [
        UsageRow(name, now[name], wilson(now[name].errors, now[name].known), rate, before.get(name))
        for name, rate in zip(names, shrunken, strict=True)
    ]
    return sorted(rows, key=lambda row: (-row.shrunken, -row.counts.calls, row.name))


def _confusions(runs: Iterable[int]) -> list[ConfusionRow]:
    columns = ("subcommand", "kind", "typed", "meant", "calls", "trials", "run")
    totals: dict[tuple[str, str, str, str], list[tuple[int, int, int]]] = {}
    for *key, calls, trials, run in FlagConfusion.objects.filter(run__in=list(runs)).values_list(*columns):
        totals.setdefault((key[0], key[1], key[2], key[3]), []).append((calls, trials, run))
    rows = [
        ConfusionRow(
            subcommand,
            ConfusionKind(kind),
            typed,
            meant,
            sum(calls for calls, _, _ in each),
            sum(trials for _, trials, _ in each),
            len(each),
            max(run for _, _, run in each),
        )
        for (subcommand, kind, typed, meant), each in totals.items()
    ]
    return sorted(rows, key=lambda row: (-row.trials, -row.calls, row.subcommand, row.typed, row.meant))


def describe_confusion(row: ConfusionRow) -> str:
    """Return a confusion as an item that a tool's author can work off."""
    if row.kind is ConfusionKind.MISSING:
        return f"`{row.subcommand}` was called without `{row.meant}`."
    if row.kind is ConfusionKind.WRONG_PLACE:
        return f"`{row.typed}` was typed on the wrong side of `{row.subcommand}`."
    if row.kind is ConfusionKind.WRONG_VALUE:
        return f"`{row.subcommand}` was called with a wrong `{row.typed}`: it must be {row.meant}."
    meant = f" Did they mean `{row.meant}`?" if row.meant else ""
    if row.kind is ConfusionKind.UNKNOWN_COMMAND:
        return f"There is no command `{row.typed}`.{meant}"
    return f"`{row.subcommand}` has no option `{row.typed}`.{meant}"


def markdown_of(rows: Sequence[ConfusionRow]) -> str:
    """Return the confusions as a list of tasks in Markdown."""
    lines = [f"- [ ] {describe_confusion(row)} {row.calls} calls in {row.trials} trials." for row in rows]
    return "\n".join(lines) + "\n" if lines else "No confused flags.\n"

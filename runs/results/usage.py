"""How agents used the tool's subcommands and flags, over the newest runs that match a filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from evalhub.teams.models import Project
from evaluators.statistics.descriptive import Interval, shrunken_rates, wilson_interval
from evaluators.tool_use.flag_confusion import ConfusionKind
from runs.models import FlagConfusion, SubcommandMeasure
from runs.models.run import RunState
from runs.results.counting import (
    ESTIMATED,
    FEWEST_KNOWN,
    counts_alike,
    list_exit_sources,
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
    """95 % interval of the error rate (Wilson)."""
    shrunken: float
    """The error rate drawn towards that of all subcommands: what the colour shows."""
    before: SubcommandCalls | None
    """The same in the reference runs; None if they never called it."""

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
        """The difference of the error rate to the one before."""
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
    """Subcommands by failures, confusions by frequency, the highest first."""

    runs: int
    subcommands: list[UsageRow]
    confusions: list[ConfusionRow]
    estimated: int = 0
    """Runs with ends that are estimated from text."""
    not_compared: int = 0
    """Runs that are left out of the comparison because they count commands differently."""
    versions: tuple[str, str] | None = None
    """The tool's versions that are compared, the older one first; words for them if suites have different ones."""
    compared: bool = False
    """Whether any run to compare with was found."""

    @property
    def by_failures(self) -> list[UsageRow]:
        """Return the subcommands with the most failed calls first."""
        return sorted(self.subcommands, key=lambda row: (-row.counts.errors, -row.counts.calls, row.name))

    @property
    def most_calls(self) -> int:
        """Return the calls of the subcommand that has most of them, before or now."""
        both = (counts for row in self.subcommands for counts in (row.counts, row.before) if counts)
        return max((counts.calls for counts in both), default=0)

    def confused_at(self, subcommand: str) -> list[ConfusionRow]:
        """Return the confusions in calls of a subcommand, the most frequent first."""
        return [each for each in self.confusions if each.subcommand == subcommand]


class UsageComparison(StrEnum):
    """What the usage of runs is compared with."""

    NOTHING = ""
    BASELINES = "baseline"
    VERSIONS = "version"
    """In each suite, the runs of the tool's newest version with those of the version before it."""


class _ReadRun(NamedTuple):
    pk: int
    baseline: int | None
    counting: dict[str, Any]
    baseline_counting: dict[str, Any] | None
    tool_version: str
    suite: int


def read_usage(
    project: Project, filters: RunListFilters, *, compare: UsageComparison = UsageComparison.NOTHING
) -> SubcommandUsage:
    """Return the usage in the newest closed runs that match, and what it is compared with. Three queries."""
    closed = with_tag_lines(runs_of(project), filters).filter(filters.condition(), state=RunState.FINISHED)
    columns = ("pk", "baseline_id", "counting", "baseline__counting", "tool_version", "suite_id")
    read = [_ReadRun(*row) for row in closed.order_by("-pk").values_list(*columns)[:MOST_RUNS]]
    parts = _parts(read, compare)
    fields = (*_SUMMED, "tries")
    rows = SubcommandMeasure.objects.filter(run__in={*parts.now, *parts.before}, scenario=None)
    measured = list(rows.order_by("run_id").values("run", "subcommand", *fields))
    now = _sum_by_subcommand(row for row in measured if row["run"] in parts.now)
    before = _sum_by_subcommand(row for row in measured if row["run"] in parts.before)
    return SubcommandUsage(
        len(parts.now),
        _rows(now, before),
        _confusions(parts.now),
        sum(ESTIMATED in list_exit_sources(run.counting) for run in read if run.pk in parts.now),
        parts.left_out,
        parts.versions,
        compared=bool(parts.before),
    )


class _Parts(NamedTuple):
    """Keys of the runs on both sides of a comparison."""

    now: set[int]
    before: set[int]
    left_out: int = 0
    versions: tuple[str, str] | None = None


def _parts(read: Sequence[_ReadRun], compare: UsageComparison) -> _Parts:
    if compare == UsageComparison.BASELINES:
        return _by_baseline(read)
    return (
        _by_version(read) if compare == UsageComparison.VERSIONS else _Parts({run.pk for run in read}, set())
    )


def _by_baseline(read: Sequence[_ReadRun]) -> _Parts:
    alike = {
        run.baseline for run in read if run.baseline and counts_alike(run.counting, run.baseline_counting)
    }
    left_out = sum(not counts_alike(run.counting, run.baseline_counting) for run in read if run.baseline)
    return _Parts({run.pk for run in read}, {pk for pk in alike if pk}, left_out)


def _by_version(read: Sequence[_ReadRun]) -> _Parts:
    """Return for each suite the runs of the tool's newest version, and those of the version before it."""
    now, before, pairs = set[int](), set[int](), set[tuple[str, str]]()
    left_out = 0
    for suite in dict.fromkeys(run.suite for run in read):
        runs = [run for run in read if run.suite == suite and run.tool_version]
        newest, *earlier = dict.fromkeys(run.tool_version for run in runs) or ("",)
        if earlier:
            newer, older = (
                [run for run in runs if run.tool_version == version] for version in (newest, earlier[0])
            )
            alike = {run.pk for run in older if counts_alike(newer[0].counting, run.counting)}
            now |= {run.pk for run in newer}
            before |= alike
            left_out += len(older) - len(alike)
            pairs.add((earlier[0], newest))
    if not before:
        return _Parts({run.pk for run in read}, set(), left_out)
    return _Parts(
        now, before, left_out, pairs.pop() if len(pairs) == 1 else ("the version before", "the newest")
    )


_SUMMED = ("calls", "errors", "first_tries", "retries_after_failure", "helps", "helps_before", "unknown")


def _sum_by_subcommand(rows: Iterable[Mapping[str, Any]]) -> dict[str, SubcommandCalls]:
    totals: dict[str, SubcommandCalls] = {}
    for row in rows:
        counts = totals.setdefault(row["subcommand"], SubcommandCalls())
        for name in _SUMMED:
            setattr(counts, name, getattr(counts, name) + row[name])
        counts.tries.update({int(number): often for number, often in row["tries"].items()})
        if row["errors"]:
            counts.failing_run = row["run"]
    return totals


def _rows(now: Mapping[str, SubcommandCalls], before: Mapping[str, SubcommandCalls]) -> list[UsageRow]:
    names = list(now)
    shrunken = shrunken_rates([(now[name].errors, now[name].known) for name in names])
    rows = [
        UsageRow(name, now[name], wilson_interval(now[name].errors, now[name].known), rate, before.get(name))
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
            sum(calls for calls, _, _ in calls_by_run),
            sum(trials for _, trials, _ in calls_by_run),
            len(calls_by_run),
            max(run for _, _, run in calls_by_run),
        )
        for (subcommand, kind, typed, meant), calls_by_run in totals.items()
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


def name_confusion(row: ConfusionRow) -> str:
    """Return a confusion in the fewest words, for a place beside its subcommand."""
    if row.kind is ConfusionKind.MISSING:
        return f"no `{row.meant}`"
    if row.kind is ConfusionKind.WRONG_VALUE:
        return f"wrong `{row.typed}`"
    if row.kind is ConfusionKind.WRONG_PLACE:
        return f"`{row.typed}` misplaced"
    return f"`{row.typed}` for `{row.meant}`" if row.meant else f"`{row.typed}`"


def markdown_of(rows: Sequence[ConfusionRow]) -> str:
    """Return the confusions as a list of tasks in Markdown."""
    lines = [f"- [ ] {describe_confusion(row)} {row.calls} calls in {row.trials} trials." for row in rows]
    return "\n".join(lines) + "\n" if lines else "No confused flags.\n"

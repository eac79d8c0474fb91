"""Build the scenario table of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from evalhub.web.chips import Facet, Facets, Kinds, count_kinds
from evalhub.web.csv_export import Cell, Table
from evaluators.statistics.retest import Retest, RetestOutcome, describe_retest
from evaluators.statistics.scenario_classes import ScenarioClass
from runs.models import Run
from runs.results.digests import DigestedTrial, RunTrials
from runs.results.outcome_history import OutcomeHistory, RecentRun, strips_of
from runs.results.rates import Rate, ScenarioPair

MOST_ROWS = 50
"""Rows of scenarios and trials per page."""
MOST_TRIALS = 20
"""Trials shown per scenario."""


@dataclass(frozen=True, kw_only=True)
class ScenarioRow(ScenarioPair):
    """A scenario of a run and its baseline: its trials, the last twenty, and totals."""

    trials: tuple[DigestedTrial, ...]
    strip: OutcomeHistory
    kind: ScenarioClass
    """By its last trials; flaky where it failed and then passed all of its fresh trials."""
    fresh: tuple[DigestedTrial, ...]
    """Its fresh trials, which nothing here counts."""
    retest: Retest | None
    """What these say; None if it didn't run again."""
    gates: Rate
    judge: float | None
    """Mean of the judge's scores."""
    first_try: float | None
    """Mean of the trials' shares."""
    commands: float | None
    """Mean number of the tool's commands."""
    known: float | None
    """How many commands of all its trials have a known end; None without commands."""
    seconds: float | None
    """Mean time."""
    cost: float | None
    """Total in US dollars."""

    @property
    def went_wrong(self) -> bool:
        """Return whether a trial failed or had an error."""
        return "fail" in self.now or "error" in self.now

    @property
    def lost(self) -> tuple[int, int]:
        """Return how many of the baseline's passed trials no longer pass, and their number; zeros if unknown."""
        before, now = self.rates
        if before.n == now.n and now.passed < before.passed:
            return before.passed - now.passed, before.passed
        # With different numbers of trials the loss is unknown, unless all failed.
        return (now.n, now.n) if before.n and before.passed == before.n and not now.passed else (0, 0)

    @property
    def disagrees(self) -> bool:
        """Return whether gates and judge disagree in one of its trials."""
        return any([trial.disagrees for trial in self.trials])  # noqa: C419 (a list is quicker)

    def shown(self, opened: str) -> tuple[DigestedTrial, ...]:
        """Return the trials shown below it: none unless it is open."""
        return (*self.trials[:MOST_TRIALS], *self.fresh) if self.key == opened else ()


def _row(
    trials: tuple[DigestedTrial, ...],
    baseline: tuple[str, ...],
    strip: OutcomeHistory,
    fresh: tuple[DigestedTrial, ...],
    retest: Retest | None,
) -> ScenarioRow:
    costs = [trial.cost_usd for trial in trials if trial.cost_usd is not None]
    return ScenarioRow(
        key=trials[0].key,
        before=baseline,
        now=tuple([trial.mark for trial in trials]),
        trials=trials,
        strip=strip,
        kind=ScenarioClass.FLAKY if retest and retest.outcome is RetestOutcome.PASSES_AGAIN else strip.kind,
        fresh=fresh,
        retest=retest,
        gates=Rate(sum([each.gates_passed for each in trials]), sum([each.gates_total for each in trials])),
        judge=_mean([each.judge for each in trials]),
        first_try=_mean([each.first_try for each in trials]),
        commands=_mean([each.commands for each in trials]),
        known=sum(known) if (known := [each.known for each in trials if each.known is not None]) else None,
        seconds=_mean([each.seconds for each in trials]),
        cost=sum(costs) if costs else None,
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


class Columns(NamedTuple):
    """Which columns have values; empty ones are hidden."""

    gates: bool
    judge: bool
    first_try: bool
    commands: bool
    cost: bool
    seconds: bool


def columns_of(rows: Sequence[ScenarioRow]) -> Columns:
    """Return the columns that have values."""
    return Columns(
        gates=any(row.gates.n > 0 for row in rows),
        judge=any(row.judge is not None for row in rows),
        first_try=any(row.first_try is not None for row in rows),
        commands=any(row.commands is not None for row in rows),
        cost=any(row.cost is not None for row in rows),
        seconds=any(row.seconds is not None for row in rows),
    )


def _is_of(kind: ScenarioClass, row: ScenarioRow) -> bool:
    return row.kind is kind


FACETS: Kinds = {
    "worse": ("Worse than baseline", "worse", lambda row: row.change == "worse"),
    "better": ("Better", "better", lambda row: row.change == "better"),
    "failing": ("Any failure", "fail", lambda row: "fail" in row.now),
    "errors": ("Errors", "error", lambda row: "error" in row.now),
    "not-run": ("Not run", "none", lambda row: "none" in row.now),
    **{
        kind.value: (kind.value.capitalize(), kind.value, partial(_is_of, kind))
        for kind in (ScenarioClass.FIXED, ScenarioClass.FLAKY, ScenarioClass.BROKEN)
    },
    "disagreeing": ("Gates and judge disagree", "", lambda row: row.disagrees),
}


def scenario_rows(
    read: RunTrials,
    recent: Mapping[int, RecentRun],
    left_out: Collection[str] = (),
    version: int | None = None,
    retests: Iterable[Retest] = (),
) -> list[ScenarioRow]:
    """Return a run's scenarios in their order, with their trials and their strips over `recent` runs.

    Scenarios in `left_out` can't be compared with the baseline; `version` is the run's version of the suite; `retests`
    are its own. One query, and one if versions differ.
    """
    grouped: dict[int, list[DigestedTrial]] = {}
    for trial in read.trials:
        grouped.setdefault(trial.scenario, []).append(trial)
    again: dict[int, list[DigestedTrial]] = {}
    for trial in read.digest.retests:
        again.setdefault(trial.scenario, []).append(trial)
    said = {each.key: each for each in retests}
    last = strips_of(recent, version)
    return [
        _row(
            tuple(trials),
            tuple(() if trials[0].key in left_out else read.before.get(trials[0].key, ())),
            last.get(pk, OutcomeHistory()),
            tuple(again.get(pk, ())),
            said.get(trials[0].key),
        )
        for pk, trials in grouped.items()
    ]


def count_facets(rows: list[ScenarioRow]) -> Facets:
    """Return the chips with their numbers of rows, without empty ones."""
    counted = count_kinds(rows, FACETS)
    return Facets(len(rows), (Facet("", "All", len(rows)), *(chip for chip in counted if chip.n)))


@dataclass(frozen=True)
class ScenarioPage:
    """One page of scenarios and the next page's start; None at the end."""

    rows: list[ScenarioRow]
    following: int | None


def part_of(rows: list[ScenarioRow], begin: int, opened: str) -> ScenarioPage:
    """Return the scenarios from `begin` on that fill a page with their shown trials; at least one."""
    end, filled = begin, 0
    while end < len(rows):
        filled += 1 + len(rows[end].shown(opened))
        if filled > MOST_ROWS and end > begin:
            break
        end += 1
    return ScenarioPage(rows[begin:end], end if end < len(rows) else None)


SCENARIO_COLUMNS = (
    *("scenario", "trials", "passed", "failed", "errors", "pass_rate", "baseline_passed", "baseline_failed"),
    *(
        "change",
        "gates_passed",
        "gates",
        "judge",
        "first_try",
        "commands",
        "cost_usd",
        "seconds",
        "class",
        "retest",
        "reasons",
    ),
)


def scenario_table(run: Run, rows: Iterable[ScenarioRow]) -> Table:
    """Return a run's scenarios; `reasons` are those of its failed trials, a line each."""
    return Table(f"run-{run.pk}-scenarios", SCENARIO_COLUMNS, (_scenario(row) for row in rows))


def _scenario(row: ScenarioRow) -> tuple[Cell, ...]:
    reasons = dict.fromkeys(reason for trial in row.trials for reason in trial.lost)
    before, now = row.rates
    return (
        *(row.key, len(row.trials), now.passed, now.n - now.passed, row.now.count("error")),
        *(now.share if now.n else None, before.passed, before.n - before.passed),
        *(now.change_from(before), row.gates.passed, row.gates.n, row.judge, row.first_try, row.commands),
        *(row.cost, row.seconds, row.kind, describe_retest(row.retest) if row.retest else ""),
        "\n".join(reasons),
    )

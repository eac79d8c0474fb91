"""One run: its scenarios with their trials, and what its diagnosis comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.functional import cached_property

from runs.models import Run
from runs.warehouse.rates import Rate
from runs.warehouse.run_trials import RunTrials, TrialRow
from runs.warehouse.strips import Strip, strips

MOST_ROWS = 50
"""Rows of scenarios and trials that a page fills before it leaves the rest to the next."""
MOST_TRIALS = 20
"""Trials shown of one scenario."""


@dataclass(frozen=True)
class ScenarioRow:
    """A scenario of a run: its trials, those of the baseline, the last twenty."""

    key: str
    trials: list[TrialRow]
    baseline: tuple[str, ...]
    strip: Strip

    @cached_property
    def marks(self) -> list[str]:
        return [trial.mark for trial in self.trials]

    @property
    def is_telling(self) -> bool:
        """Whether its trials are shown without being asked for: something went wrong in one."""
        return "fail" in self.marks or "error" in self.marks

    def shown(self, opened: str) -> list[TrialRow]:
        """Return the trials that stand below it: none where all went well, unless it is the one opened."""
        return self.trials[:MOST_TRIALS] if self.is_telling or self.key == opened else []

    @cached_property
    def rate(self) -> Rate:
        return Rate(self.marks.count("pass"), self.marks.count("pass") + self.marks.count("fail"))

    @cached_property
    def gates(self) -> Rate:
        each = [trial.gates for trial in self.trials]
        return Rate(sum(rate.passed for rate in each), sum(rate.n for rate in each))

    def _mean(self, values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    @cached_property
    def judge(self) -> float | None:
        return self._mean(trial.judge for trial in self.trials)

    @property
    def seconds(self) -> float | None:
        return self._mean(trial.seconds for trial in self.trials)

    @property
    def cost(self) -> float | None:
        known = [trial.cost_usd for trial in self.trials if trial.cost_usd is not None]
        return sum(known) if known else None

    @property
    def standing(self) -> str:
        """`worse` or `better` than the baseline by counting, which is no verdict; nothing without one."""
        before = Rate(self.baseline.count("pass"), self.baseline.count("pass") + self.baseline.count("fail"))
        if before.n and self.rate.n and before.share != self.rate.share:
            return "worse" if self.rate.share < before.share else "better"
        return ""


@dataclass(frozen=True)
class Chip:
    """A way to narrow the table, and how many scenarios it leaves."""

    name: str
    label: str
    n: int
    sign: str = ""
    look: str = ""


@dataclass(frozen=True)
class Facets:
    """The chips above a run's scenarios."""

    all: int
    chips: tuple[Chip, ...]


Test = Callable[[ScenarioRow], bool]
FACETS: dict[str, tuple[str, str, str, Test]] = {
    "worse": ("Worse than baseline", "▼", "worse", lambda row: row.standing == "worse"),
    "better": ("Better", "▲", "better", lambda row: row.standing == "better"),
    "failing": ("Any failure", "✕", "worse", lambda row: "fail" in row.marks),
    "errors": ("Errors", "!", "caution", lambda row: "error" in row.marks),
}


def scenario_rows(run: Run, read: RunTrials) -> list[ScenarioRow]:
    """Return the run's scenarios in their order, with their trials. Two queries."""
    grouped: dict[int, list[TrialRow]] = {}
    for trial in read.trials:
        grouped.setdefault(trial.scenario, []).append(trial)
    last = strips(run.suite, target=run.target_id, up_to=run.pk)
    return [
        ScenarioRow(each[0].key, each, tuple(read.before.get(each[0].key, ())), last.get(pk, Strip()))
        for pk, each in grouped.items()
    ]


def facets(rows: list[ScenarioRow]) -> Facets:
    """Count the rows of each chip; those that would leave none are not offered."""
    counted = [
        Chip(name, label, sum(map(test, rows)), sign, look)
        for name, (label, sign, look, test) in FACETS.items()
    ]
    return Facets(len(rows), (Chip("", "All", len(rows)), *(chip for chip in counted if chip.n)))


def chosen(rows: list[ScenarioRow], show: str) -> list[ScenarioRow]:
    """Return the rows of a chip; all of them for a chip that does not exist."""
    return [row for row in rows if FACETS[show][3](row)] if show in FACETS else rows


@dataclass(frozen=True)
class Part:
    """As many scenarios as a page shows, and where the next begin; None at the end."""

    rows: list[ScenarioRow]
    following: int | None


def part_of(rows: list[ScenarioRow], begin: int, opened: str) -> Part:
    """Return the scenarios from `begin` on that fill a page with themselves and their shown trials; at least one."""
    end, filled = begin, 0
    while end < len(rows):
        filled += 1 + len(rows[end].shown(opened))
        if filled > MOST_ROWS and end > begin:
            break
        end += 1
    return Part(rows[begin:end], end if end < len(rows) else None)


@dataclass(frozen=True)
class Finding:
    """A pattern that the diagnosis saw in some of a run's trials."""

    pattern: str
    sentence: str
    evidence: tuple[str, ...]
    trials: tuple[int, ...]

    @property
    def title(self) -> str:
        return self.pattern.replace("_", " ").capitalize()


def diagnosis_of(read: RunTrials) -> list[Finding]:
    """Return the patterns seen in a run's trials, the most frequent first."""
    seen: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for trial in read.trials:
        for finding in trial.findings:
            seen.setdefault(finding["pattern"], []).append((trial.pk, finding))
    return [_finding(name, each) for name, each in sorted(seen.items(), key=lambda item: -len(item[1]))]


def _finding(name: str, seen: list[tuple[int, dict[str, Any]]]) -> Finding:
    first = seen[0][1]
    return Finding(name, first["sentence"], tuple(first.get("evidence") or ()), tuple(pk for pk, _ in seen))

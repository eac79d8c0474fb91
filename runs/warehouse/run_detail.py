"""One run: its scenarios with their trials, and what its diagnosis comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runs.models import Run, Trial
from runs.models.trial import TrialState
from runs.reasons import failed_scores, is_verdict
from runs.warehouse.rates import Rate
from runs.warehouse.strips import Strip, strips


@dataclass(frozen=True)
class TrialRow:
    """A trial in a scenario's row."""

    trial: Trial

    @cached_property
    def mark(self) -> str:
        """Its dot."""
        if self.trial.state == TrialState.FINISHED:
            return self.trial.outcome
        return "running" if self.trial.state == TrialState.RUNNING else "none"

    @property
    def state(self) -> str:
        return self.trial.outcome or self.trial.state

    @property
    def number(self) -> int:
        return self.trial.index + 1

    @cached_property
    def gates(self) -> Rate:
        return _gates(self.trial.scores)

    @cached_property
    def judge(self) -> float | None:
        """The judge's score, None where it was not asked."""
        for score in self.trial.scores:
            if score["layer"] == "judge" and score["name"] == "judge":
                value: float | None = score.get("value")
                return value
        return None

    @cached_property
    def lost(self) -> list[str]:
        """What failed, in the words of the layers."""
        if self.trial.error:
            return [self.trial.error]
        failed = failed_scores(self.trial.scores)
        return [score.get("message") or f"{score['name']} failed." for score in failed[:3]]


def _gates(scores: Iterable[dict[str, object]]) -> Rate:
    verdicts = [
        score["passed"]
        for score in scores
        if score["layer"] != "judge"
        and score.get("passed") is not None
        and not is_verdict(str(score["layer"]), str(score["name"]))
    ]
    return Rate(sum(map(bool, verdicts)), len(verdicts))


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
        return self._mean(trial.trial.seconds for trial in self.trials)

    @property
    def cost(self) -> float | None:
        known = [trial.trial.cost_usd for trial in self.trials if trial.trial.cost_usd is not None]
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


def scenario_rows(run: Run) -> list[ScenarioRow]:
    """Return the run's scenarios in their order, with their trials. Four queries, or five with a baseline."""
    trials = (
        Trial.objects.filter(run=run)
        .select_related("scenario")
        .defer("answer", "detail")
        .order_by("position")
    )
    grouped: dict[int, list[Trial]] = {}
    for trial in trials:
        grouped.setdefault(trial.scenario_id, []).append(trial)
    before: dict[int, list[str]] = {}
    if run.baseline_id:
        finished = Trial.objects.filter(run=run.baseline_id, state=TrialState.FINISHED).order_by("position")
        for scenario, outcome in finished.values_list("scenario", "outcome"):
            before.setdefault(scenario, []).append(outcome)
    last = strips(run.suite, target=run.target_id, up_to=run.pk)
    return [
        ScenarioRow(
            each[0].scenario.key,
            [TrialRow(t) for t in each],
            tuple(before.get(pk, ())),
            last.get(pk, Strip()),
        )
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
class Finding:
    """A pattern that the diagnosis saw in some of a run's trials."""

    pattern: str
    sentence: str
    evidence: tuple[str, ...]
    trials: tuple[int, ...]

    @property
    def title(self) -> str:
        return self.pattern.replace("_", " ").capitalize()


def diagnosis_of(run: Run) -> list[Finding]:
    """Return the patterns seen in the run's trials, the most frequent first. One query."""
    found = Trial.objects.filter(run=run, state=TrialState.FINISHED).values_list("pk", "detail__diagnosis")
    seen: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for pk, findings in found:
        for finding in findings or ():
            seen.setdefault(finding["pattern"], []).append((pk, finding))
    return [_finding(name, each) for name, each in sorted(seen.items(), key=lambda item: -len(item[1]))]


def _finding(name: str, seen: list[tuple[int, dict[str, Any]]]) -> Finding:
    first = seen[0][1]
    return Finding(name, first["sentence"], tuple(first.get("evidence") or ()), tuple(pk for pk, _ in seen))

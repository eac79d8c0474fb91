"""A run in three layers: interaction, gates, judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from msgspec import Struct

from evalhub.web.prepared import prepared
from evaluators.scoring.base import LAYER as SCORING
from evaluators.scoring.layer import NAME as AGGREGATE
from runs.models import JudgingRecord, Run, RunMeasure, SubcommandMeasure
from runs.reasons import is_verdict
from runs.warehouse.run_trials import ReadScore, RunTrials

INTERACTION = {
    "first_try_success_rate": "First-try success",
    "error_rate": "Error rate",
    "retry_rate": "Retry rate",
    "help_seeking": "Help opened",
    "total_commands": "Commands",
    "iteration_ratio": "Iteration ratio",
    "completed": "Completed",
}
"""Measures of layer 1 in the order of the page, with their names for people."""
CRITERION = "criterion."
DECIDING = ("gates", "assertions", "evaluators")
SHORTEST_LIST = 5


@dataclass(frozen=True)
class Mean:
    """A measure over a run, beside its baseline's."""

    name: str
    label: str
    unit: str
    mean: float
    before: float | None
    better: str

    @property
    def change(self) -> float | None:
        return None if self.before is None else self.mean - self.before

    @property
    def size(self) -> float:
        """The change without its sign."""
        return abs(self.change or 0.0)

    @property
    def direction(self) -> str:
        """`better`, `worse` or `muted`: what a change of this sign means."""
        if not self.change or self.better == "none":
            return "muted"
        return "better" if (self.change > 0) == (self.better == "higher") else "worse"


@dataclass(frozen=True)
class GateKind:
    """How the gates of one kind went over a run's trials."""

    layer: str
    name: str
    passed: int
    total: int


@dataclass(frozen=True)
class Statement:
    """What a judge said in several trials in the same words."""

    text: str
    trials: tuple[int, ...]


@dataclass(frozen=True)
class Layers:
    """Everything the three panels of a run show."""

    interaction: list[Mean]
    gates: list[GateKind]
    gate_trials: tuple[int, int]
    evaluators: list[Mean]
    """What scores an answer, the weighted mean of them first."""
    judge: Mean | None
    criteria: list[Mean]
    issues: list[Statement]
    highlights: list[Statement]
    judged: int


class ReadJudging(Struct, gc=False):
    """What is read of a judging; the rest of its JSON is skipped."""

    negatives: list[str] | None = None
    positives: list[str] | None = None


_judging = msgspec.json.Decoder(ReadJudging)


def layers_of(run: Run, read: RunTrials) -> Layers:
    """Return a run's layers, from its rollups, its trials and its judgings. Two queries."""
    means = _means(run)
    scores = [
        [score for score in trial.scores if _is_single(score.layer, score.name)] for trial in read.finished
    ]
    issues, highlights, judged = statements([run.pk])
    return Layers(
        interaction=[means["interaction", name] for name in INTERACTION if ("interaction", name) in means],
        gates=gate_kinds(scores),
        gate_trials=_gate_trials(scores),
        evaluators=[means[key] for key in sorted(means, key=_aggregate_first) if key[0] == SCORING],
        judge=means.get(("judge", "judge")),
        criteria=[
            mean for (layer, name), mean in means.items() if layer == "judge" and name.startswith(CRITERION)
        ],
        issues=issues,
        highlights=highlights,
        judged=judged,
    )


def _aggregate_first(key: tuple[str, str]) -> tuple[bool, str]:
    return key[1] != AGGREGATE, key[1]


def _means(run: Run) -> dict[tuple[str, str], Mean]:
    runs = (run.pk, run.baseline_id) if run.baseline_id else (run.pk,)
    values = {(owner, *measure): mean for owner, mean, *measure in _measures(runs)}
    means = {}
    for (owner, layer, name, unit, better), mean in values.items():
        if owner == run.pk:
            label = INTERACTION.get(name) or name.removeprefix(CRITERION).replace("_", " ").capitalize()
            before = values.get((run.baseline_id, layer, name, unit, better))
            means[layer, name] = Mean(name, label, unit, mean, before, better)
    return means


@prepared
def _measures(runs: tuple[int, ...]) -> QuerySet[RunMeasure, Any]:
    found = RunMeasure.objects.filter(run__in=runs, scenario=None)
    return found.values_list(
        "run", "mean", *(f"measure__{name}" for name in ("layer", "name", "unit", "better"))
    )


@lru_cache(maxsize=1024)
def _is_single(layer: str, name: str) -> bool:
    return layer in DECIDING and not is_verdict(layer, name)


def gate_kinds(scores: Sequence[Sequence[ReadScore]]) -> list[GateKind]:
    """Return how each kind of gate went, those that failed most first."""
    passed: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for score in chain.from_iterable(scores):
        if score.passed is not None:
            total[score.layer, score.name] += 1
            passed[score.layer, score.name] += score.passed
    kinds = [GateKind(*key, passed=passed[key], total=total[key]) for key in total]
    return sorted(kinds, key=lambda kind: (kind.passed - kind.total, kind.name))


def _gate_trials(scores: Sequence[Sequence[ReadScore]]) -> tuple[int, int]:
    """Return in how many trials every gate passed, and in how many any gate decided."""
    decided = passed = 0
    for each in scores:
        verdicts = [score.passed for score in each if score.passed is not None]
        decided += bool(verdicts)
        passed += bool(verdicts) and all(verdicts)
    return passed, decided


def statements(runs: Sequence[int]) -> tuple[list[Statement], list[Statement], int]:
    """Return issues and highlights that count, by how many trials they are said of, and the number of judgings.

    One query; prompts and raw answers are not loaded.
    """
    negatives: dict[str, dict[int, None]] = {}
    positives: dict[str, dict[int, None]] = {}
    judged = 0
    for trial, text in _judgings(tuple(runs)):
        read = _judging.decode(text)
        judged += 1
        for texts, said in ((read.negatives, negatives), (read.positives, positives)):
            for each in texts or ():
                said.setdefault(" ".join(each.split()), {})[trial] = None
    return _most_said(negatives), _most_said(positives), judged


@prepared
def _judgings(runs: tuple[int, ...]) -> QuerySet[JudgingRecord, tuple[int, str]]:
    found = JudgingRecord.objects.filter(trial__run__in=runs, counts=True).order_by("pk")
    return found.values_list("trial", Cast("content", TextField()))


def _most_said(said: dict[str, dict[int, None]]) -> list[Statement]:
    grouped: dict[str, tuple[str, dict[int, None]]] = {}
    for text, trials in said.items():
        key = text.casefold().rstrip(".! ")
        grouped.setdefault(key, (text, {}))[1].update(trials)
    found = [Statement(text, tuple(trials)) for text, trials in grouped.values()]
    return sorted(found, key=lambda statement: -len(statement.trials))


@dataclass(frozen=True)
class SubcommandRow:
    """How one subcommand of the tool went; rates are of its calls."""

    name: str
    calls: int
    errors: float
    first_tries: float
    retries: float
    helps: int
    few: bool
    heat: int
    """1 to 5: the share of failing calls, in fifths of one half."""


def subcommands(run: Run) -> list[SubcommandRow]:
    """Return the run's subcommands, those that fail most first. One query."""
    rows = [_subcommand(each) for each in _subcommands(run.pk)]
    return sorted(rows, key=lambda row: (row.few, -row.errors, row.name))


@prepared
def _subcommands(run: int) -> QuerySet[SubcommandMeasure]:
    return SubcommandMeasure.objects.filter(run=run, scenario=None)


def _subcommand(each: SubcommandMeasure) -> SubcommandRow:
    calls = each.calls or 1
    share = each.errors / calls
    return SubcommandRow(
        name=each.subcommand,
        calls=each.calls,
        errors=share,
        first_tries=each.first_tries / calls,
        retries=each.retries_after_failure / calls,
        helps=each.helps,
        few=each.calls < SHORTEST_LIST,
        heat=min(5, 1 + int(share * 10)),
    )

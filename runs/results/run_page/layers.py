"""Summarise a run in three layers: interaction, gates, judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from django.db.models import QuerySet

from evalhub.lib.numbers import counted
from evaluators.grading.evaluator import LAYER as SCORING
from evaluators.grading.scores.weighted_score import NAME as AGGREGATE
from evaluators.statistics.descriptive import Interval, wilson
from runs.models import Run, RunMeasure
from runs.results.counting import (
    FEWEST_KNOWN,
    Counting,
    common_ends,
    compared_by,
    counting_of,
    counts_alike,
    ends_texts,
    takes_reported,
)
from runs.results.layer_totals import GateKind, LayerTotals
from runs.results.measures import CRITERION, INTERACTION, REPORTED, unit_of
from runs.results.repeated_statements import RepeatedStatement
from runs.results.rollups import COMPLETED, FALSE_DONE, so_far
from runs.results.run_trials import RunTrials
from scenarios.formats.agent_skills import NAME as SKILLS

LAYER = "interaction"


@dataclass(frozen=True)
class Mean:
    """A measure over a run, beside its baseline's."""

    name: str
    label: str
    unit: str
    mean: float
    change: float | None
    """Change from the baseline's mean over shared scenarios; None without any."""
    better: str

    @property
    def direction(self) -> str:
        """Return `better`, `worse` or `muted` for the change's sign."""
        if not self.change or self.better == "none":
            return "muted"
        return "better" if (self.change > 0) == (self.better == "higher") else "worse"


TRIGGERS = {"skill_loaded": "Sensitivity", "skill_not_loaded": "Specificity"}
"""What the share of passed gates of a kind is called where a skill must be loaded, or must not."""


@dataclass(frozen=True)
class TriggerRate:
    """How often a skill was loaded exactly when it should be, over the trials of some queries."""

    label: str
    passed: int
    trials: int
    queries: int

    @property
    def share(self) -> float:
        """Return the share of trials."""
        return self.passed / self.trials

    @property
    def interval(self) -> Interval:
        """Return its 95 % interval at the number of queries, because trials of a query resemble each other."""
        return wilson(self.share * self.queries, self.queries)


@dataclass(frozen=True)
class Layers:
    """Content of a run's three panels."""

    interaction: list[Mean]
    gates: list[GateKind]
    gate_trials: tuple[int, int]
    false_done: Mean | None
    """The share of trials that the agent completed and in which a gate failed; None if not measured."""
    evaluators: list[Mean]
    """Scores of an answer, the weighted mean first."""
    judge: Mean | None
    criteria: list[Mean]
    issues: list[RepeatedStatement]
    highlights: list[RepeatedStatement]
    judged: int
    contradictory: list[int]
    """Trials with a judging whose total contradicts its weighted criteria."""
    totals: LayerTotals | None
    """None in digests of older releases."""
    compared_by: str = ""
    """By which exit codes it is compared with the baseline, as a sentence, where the two runs count differently."""
    of_statements: bool = False
    """Whether the judge's score is the share of a trial's statements that hold."""

    @property
    def triggers(self) -> list[TriggerRate]:
        """Return sensitivity and specificity of a run with trigger queries."""
        by_name = {gate.name: gate for gate in self.gates if gate.scenarios}
        return [
            TriggerRate(label, gate.passed, gate.total, gate.scenarios)
            for name, label in TRIGGERS.items()
            if (gate := by_name.get(name))
        ]

    @property
    def has_rates(self) -> bool:
        """Return whether enough ends are known for a rate."""
        ends = self.totals.ends if self.totals else None
        return ends is None or not ends.commands or ends.known >= FEWEST_KNOWN

    @property
    def ends(self) -> list[str]:
        """Return how the ends are known and what isn't counted, as short texts; empty where every end is known."""
        ends = self.totals.ends if self.totals else None
        return ends_texts(ends) if ends else []

    @property
    def judge_caption(self) -> str:
        """Return the judge's caption: how many trials reached the threshold, or how many judgments exist."""
        judge = self.totals.judge if self.totals else None
        if judge is None or not judge.decided:
            return f"mean, {counted(self.judged, 'judgment')}"
        if self.of_statements:
            return f"mean share of statements, all hold in {judge.reached} of {judge.decided}"
        bar = "passed" if judge.threshold is None else f"≥ {judge.threshold:.2f}"
        return f"mean, {judge.reached} of {judge.decided} {bar}"

    @property
    def source(self) -> str:
        """Return the source of layer 1's commands; empty without commands."""
        totals = self.totals
        if totals is None or not (totals.recorded or totals.structured or totals.text):
            return ""
        parts = [
            f"{name} ({n} of {counted(totals.trials, 'trial')})"
            for name, n in (
                ("recorded", totals.recorded),
                ("structured events", totals.structured),
                ("transcript text, estimated", totals.text),
            )
            if n
        ]
        return f"Source: {', '.join(parts)}"

    @property
    def is_compared(self) -> bool:
        """Return whether any measure of layer 1 is compared with the baseline."""
        return any(each.change is not None for each in self.interaction)


def layers_of(run: Run, read: RunTrials) -> Layers:
    """Return a run's layers from its rollups and its trials' digest. One or two queries.

    An open run's means come from its finished trials. They aren't compared, because they cover other
    scenarios than the baseline's.
    """
    means, digest = _means_so_far(run) if run.is_open else _means(run, read), read.digest
    return Layers(
        interaction=[means[LAYER, name] for name in INTERACTION if (LAYER, name) in means],
        gates=digest.gates,
        gate_trials=digest.gate_trials,
        false_done=means.get(FALSE_DONE),
        evaluators=[means[key] for key in sorted(means, key=_aggregate_first) if key[0] == SCORING],
        judge=means.get(("judge", "judge")),
        criteria=[
            mean for (layer, name), mean in means.items() if layer == "judge" and name.startswith(CRITERION)
        ],
        issues=digest.issues,
        highlights=digest.highlights,
        judged=digest.judged,
        contradictory=digest.contradictory,
        totals=digest.layers,
        compared_by=_compared_by(run),
        of_statements=run.suite.format == SKILLS,
    )


def _compared_by(run: Run) -> str:
    before = run.baseline
    if run.is_open or before is None or counts_alike(run.counting, before.counting):
        return ""
    return compared_by(before.counting, run.counting)


def _aggregate_first(key: tuple[str, str]) -> tuple[bool, str]:
    return key[1] != AGGREGATE, key[1]


def _means(run: Run, read: RunTrials) -> dict[tuple[str, str], Mean]:
    rows = list(_measures(_both(run)))
    changes = _changes(run, read, {row[:3]: row[3:5] for row in rows})
    return {
        (layer, name): Mean(name, _label(name), unit, mean, changes.get((layer, name)), better)
        for owner, layer, name, _, mean, unit, better in rows
        if owner == run.pk
    }


def _both(run: Run) -> tuple[int, ...]:
    return (run.pk, run.baseline_id) if run.baseline_id else (run.pk,)


def _label(name: str) -> str:
    return INTERACTION.get(name) or name.removeprefix(CRITERION).replace("_", " ").capitalize()


def _changes(
    run: Run, read: RunTrials, means: Mapping[tuple[int, str, str], tuple[int, float]]
) -> dict[tuple[str, str], float]:
    """Return layer 1's changes from the baseline; one query if its scenarios differ."""
    own, before = (
        {name: means[key, LAYER, name] for name in INTERACTION if (key, LAYER, name) in means}
        for key in (run.pk, run.baseline_id or 0)
    )
    alike = read.before.keys() == read.outcomes.keys() and _counts_alike(run)
    if not alike or any(own[name][0] != before[name][0] for name in own.keys() & before.keys()):
        return _changes_of_shared(run)
    return {(LAYER, name): own[name][1] - before[name][1] for name in own.keys() & before.keys()}


def _counts_alike(run: Run) -> bool:
    return run.baseline is None or counts_alike(run.counting, run.baseline.counting)


def _can_compare(name: str, sides: Sequence[Counting | None]) -> bool:
    """Return whether a measure of a scenario can be compared, by how both runs count its commands."""
    one, other = sides[0], sides[-1]
    if name == COMPLETED[1] or one is None or other is None or one == other:
        return True
    return one.rules == other.rules and bool(common_ends(one, other))


def _changes_of_shared(run: Run) -> dict[tuple[str, str], float]:
    """Return layer 1's changes over the scenarios that both runs measured. One query."""
    means: defaultdict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    rows = list(_of_scenarios(_both(run)))
    known = {(owner, layer, name, key): mean for owner, layer, name, key, mean in rows}
    runs = {run.pk: run, **({run.baseline.pk: run.baseline} if run.baseline else {})}
    for owner, layer, name, key, _ in rows:
        sides = [counting_of(runs[each].counting, key) for each in (owner, *(runs.keys() - {owner}))]
        if layer != LAYER or not _can_compare(name, sides):
            continue
        chosen = REPORTED if takes_reported(sides[0], sides[-1]) else LAYER
        if (owner, chosen, name, key) in known:
            means[name, key][owner] = known[owner, chosen, name, key]
    differences: defaultdict[str, list[float]] = defaultdict(list)
    for (name, _), each in means.items():
        if len(each) == 2:
            differences[name].append(each[run.pk] - each[run.baseline_id or 0])
    return {(LAYER, name): fmean(each) for name, each in differences.items()}


def _means_so_far(run: Run) -> dict[tuple[str, str], Mean]:
    means = {}
    for (layer, name), series in so_far(run.pk).items():
        unit, better = unit_of(layer, name)
        means[layer, name] = Mean(name, _label(name), unit, series.mean, None, better)
    return means


def _measures(runs: tuple[int, ...]) -> QuerySet[RunMeasure, Any]:
    found = RunMeasure.objects.filter(run__in=runs, scenario=None)
    return found.values_list(
        "run", "measure__layer", "measure__name", "n", "mean", "measure__unit", "measure__better"
    )


def _of_scenarios(runs: tuple[int, ...]) -> QuerySet[RunMeasure, Any]:
    interaction = {"measure__layer__in": (LAYER, REPORTED), "measure__name__in": tuple(INTERACTION)}
    found = RunMeasure.objects.filter(run__in=runs, scenario__isnull=False, **interaction)
    return found.values_list("run", "measure__layer", "measure__name", "scenario__key", "mean")

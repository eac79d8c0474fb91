"""Summarise a run in three layers: interaction, gates, judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.utils.safestring import SafeString

from evalhub.lib.numbers import format_count, format_measure
from evalhub.web.charts import dumbbell
from evaluators.grading.evaluator import LAYER as SCORING
from evaluators.grading.scores.weighted_score import NAME as AGGREGATE
from evaluators.statistics.descriptive import Interval, wilson_interval
from evaluators.statistics.measure_change import ChangeVerdict
from runs.compare.shown_changes import ShownChange, ShownVerdict
from runs.models import Run, RunMeasure
from runs.results.counting import (
    FEWEST_KNOWN,
    compared_by,
    counts_alike,
    describe_exit_codes,
    describe_unknown_exits,
)
from runs.results.digests import Digest, RunTrials
from runs.results.measures import CRITERION, INTERACTION, unit_of
from runs.results.repeated_statements import statement_texts
from runs.results.rollups import FALSE_DONE, so_far
from scenarios.formats.agent_skills import NAME as SKILLS

LAYER = "interaction"
FEWEST_EARLIER = 3
"""Earlier runs whose lowest and highest means are drawn behind a measure."""


@dataclass(frozen=True)
class Mean:
    """A measure over a run, beside what it was compared with."""

    name: str
    label: str
    unit: str
    mean: float
    compared: ShownChange | None = None
    """Its stored change over the scenarios that can be compared; None without any."""
    band: tuple[float, float] | None = None
    """The smallest and largest mean of its line's runs, else of those before it; None below `FEWEST_RUNS`."""

    @property
    def before(self) -> float | None:
        return self.compared.change.before if self.compared else None

    @property
    def after(self) -> float:
        """Return the mean over what was compared, else over the run."""
        after = self.compared.change.after if self.compared else None
        return self.mean if after is None else after

    @property
    def picture(self) -> SafeString | None:
        """Return before and after as dots: rates and scores from 0 to 1, others from 0 to a quarter above the largest."""
        if self.compared is None or self.before is None:
            return None
        largest = max(self.before, self.after, self.band[1] if self.band else 0.0)
        top = 1.0 if self.unit in ("rate", "score") else 1.25 * largest or 1.0
        before, after = (format_measure(each, self.unit) for each in (self.before, self.after))
        words = f"{self.label}: {before} to {after}, {ChangeVerdict(self.compared.verdict).label.lower()}"
        if self.band:
            words += f"; earlier runs {' to '.join(format_measure(each, self.unit) for each in self.band)}"
        return dumbbell(
            self.before / top,
            self.after / top,
            band=(self.band[0] / top, self.band[1] / top) if self.band else None,
            label=words,
            look=self.compared.direction,
        )


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
        return wilson_interval(self.share * self.queries, self.queries)


@dataclass(frozen=True)
class Layers:
    """Content of a run's three panels."""

    digest: Digest
    interaction: list[Mean]
    gate_means: dict[tuple[str, str], Mean]
    """The pass rate of each kind of gate, by layer and name."""
    false_done: Mean | None
    """The share of trials that the agent completed and in which a gate failed; None if not measured."""
    evaluators: list[Mean]
    """Scores of an answer, the weighted mean first."""
    judge: Mean | None
    criteria: list[Mean]
    compared_by: str = ""
    """By which exit codes it is compared with the baseline, as a sentence, where the two runs count differently."""
    of_statements: bool = False
    """Whether the judge's score is the share of a trial's statements that hold."""

    @property
    def triggers(self) -> list[TriggerRate]:
        """Return sensitivity and specificity of a run with trigger queries."""
        by_name = {gate.name: gate for gate in self.digest.gates if gate.scenarios}
        return [
            TriggerRate(label, gate.passed, gate.total, gate.scenarios)
            for name, label in TRIGGERS.items()
            if (gate := by_name.get(name))
        ]

    @property
    def has_rates(self) -> bool:
        """Return whether enough exit codes are known for a rate."""
        codes = self.digest.layers.exit_codes
        return not codes.commands or codes.known >= FEWEST_KNOWN

    @property
    def exit_notes(self) -> list[str]:
        """Return how the known exit codes are known and what isn't counted, as short texts."""
        return describe_exit_codes(self.digest.layers.exit_codes)

    @property
    def unknown(self) -> str:
        """Return how many exit codes are unknown; empty if all are known."""
        return describe_unknown_exits(self.digest.layers.exit_codes)

    @property
    def judge_caption(self) -> str:
        """Return the judge's caption: how many trials reached the threshold, or how many judgments exist."""
        judge = self.digest.layers.judge
        if not judge.decided:
            return f"mean, {format_count(self.digest.judged, 'judgment')}"
        if self.of_statements:
            return f"mean share of statements, all hold in {judge.reached} of {judge.decided}"
        bar = "passed" if judge.threshold is None else f"≥ {judge.threshold:.2f}"
        return f"mean, {judge.reached} of {judge.decided} {bar}"

    @property
    def source(self) -> str:
        """Return the source of layer 1's commands; empty without commands."""
        totals = self.digest.layers
        if not (totals.recorded or totals.structured or totals.text):
            return ""
        parts = [
            f"{name} ({n} of {format_count(totals.trials, 'trial')})"
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
        """Return whether any measure of layer 1 is compared."""
        return any(each.picture for each in self.interaction)

    @property
    def has_bands(self) -> bool:
        """Return whether a measure's picture shows its line's earlier runs."""
        return any(
            measure.band and measure.picture
            for measure in (*self.interaction, *self.gate_means.values(), *self.criteria)
        )


def layers_of(run: Run, read: RunTrials, verdict: ShownVerdict | None, earlier: Sequence[Run] = ()) -> Layers:
    """Return a run's layers from its rollups and its trials' digest, with the bands of earlier runs.

    One query, of a skill two.

    An open run's means come from its finished trials. They aren't compared, because they cover other
    scenarios than the baseline's.
    """
    changes = {each.change.measure: each for each in (*verdict.headline, *verdict.others)} if verdict else {}
    means, digest = _means_so_far(run) if run.is_open else _means(run, earlier, changes), read.digest
    of_statements = run.suite.format == SKILLS
    texts = {id: text for (_, id), text in statement_texts([run]).items()} if of_statements else {}
    return Layers(
        digest=digest,
        interaction=[means[LAYER, name] for name in INTERACTION if (LAYER, name) in means],
        gate_means={key: means[key] for kind in digest.gates if (key := (kind.layer, kind.name)) in means},
        false_done=means.get(FALSE_DONE),
        evaluators=[
            means[key]
            for key in sorted(means, key=lambda key: (key[1] != AGGREGATE, key[1]))
            if key[0] == SCORING
        ],
        judge=means.get(("judge", "judge")),
        criteria=[
            replace(mean, label=texts.get(name.removeprefix(CRITERION), mean.label))
            for (layer, name), mean in means.items()
            if layer == "judge" and name.startswith(CRITERION)
        ],
        compared_by=_compared_by(run),
        of_statements=of_statements,
    )


def _compared_by(run: Run) -> str:
    before = run.baseline
    if run.is_open or before is None or counts_alike(run.counting, before.counting):
        return ""
    return compared_by(before.counting, run.counting)


def _means(
    run: Run, earlier: Sequence[Run], changes: Mapping[str, ShownChange]
) -> dict[tuple[str, str], Mean]:
    rows = RunMeasure.objects.filter(run__in=[run, *earlier], scenario=None)
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    of_run = {}
    for key, layer, name, mean, unit in rows.values_list(
        "run", "measure__layer", "measure__name", "mean", "measure__unit"
    ):
        if key == run.pk:
            of_run[layer, name] = mean, unit
        else:
            values[layer, name].append(mean)
    return {
        (layer, name): Mean(
            name,
            _label(name) if layer in (LAYER, "judge") else name,
            unit,
            mean,
            changes.get(f"{layer}/{name}"),
            _band(values[layer, name]),
        )
        for (layer, name), (mean, unit) in of_run.items()
    }


def _band(means: list[float]) -> tuple[float, float] | None:
    return (min(means), max(means)) if len(means) >= FEWEST_EARLIER else None


def _label(name: str) -> str:
    return INTERACTION.get(name) or name.removeprefix(CRITERION).replace("_", " ").capitalize()


def _means_so_far(run: Run) -> dict[tuple[str, str], Mean]:
    means = {}
    for (layer, name), series in so_far(run.pk).items():
        means[layer, name] = Mean(name, _label(name), unit_of(layer, name)[0], series.mean)
    return means

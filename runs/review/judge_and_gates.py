"""Where a judge and all other checks agree, and where not."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db.models import F, FloatField
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast

from evalhub.teams.models import Project
from runs.models import JudgingRecord, Resolution, Run
from runs.models.review import Right
from runs.models.run import OPEN
from runs.results.digests import DigestedTrial, judged_trials

MOST_RUNS = 50
MOST_SHOWN = 40

CELLS = {
    "weak": "Gates passed, judge failed",
    "fooled": "Gates failed, judge passed",
}


@dataclass(frozen=True)
class Disagreement:
    """A trial in which judge and gates disagree."""

    trial: DigestedTrial
    run: int
    confidence: float | None
    resolution: Resolution | None

    @property
    def cell(self) -> str:
        """Return whether the gate may be too weak or the judge fooled."""
        return "weak" if self.trial.gates_passed == self.trial.gates_total else "fooled"


@dataclass
class JudgeAndGates:
    """The 2 × 2 table over runs and its two queues."""

    both_pass: int = 0
    both_fail: int = 0
    weak: list[Disagreement] = field(default_factory=list)
    """Gates passed and the judge failed, most confident first, unresolved ones before the others."""
    fooled: list[Disagreement] = field(default_factory=list)
    runs: int = 0

    @property
    def resolved(self) -> int:
        return sum(each.resolution is not None for each in self.weak + self.fooled)

    @property
    def right(self) -> list[tuple[str, int]]:
        """Return how often each was right."""
        answers = [each.resolution.right for each in self.weak + self.fooled if each.resolution]
        return [(label, answers.count(value)) for value, label in Right.choices]


def judge_and_gates(project: Project, suite: str = "") -> JudgeAndGates:
    """Return the table over the newest closed runs. Three queries."""
    runs = Run.objects.filter(project=project).exclude(state__in=OPEN)
    if suite:
        runs = runs.filter(suite__slug=suite)
    newest = list(runs.order_by("-pk").values_list("pk", flat=True)[:MOST_RUNS])
    table, apart = JudgeAndGates(runs=len(newest)), []
    for run, is_passed, trial in judged_trials(newest):
        if trial:
            apart.append((run, trial))
        elif is_passed:
            table.both_pass += 1
        else:
            table.both_fail += 1
    keys = [trial.pk for _, trial in apart]
    confidence = _confidence(keys)
    resolved = Resolution.objects.filter(trial__in=keys).select_related("by")
    resolutions = {resolution.trial_id: resolution for resolution in resolved}
    disagreements = [
        Disagreement(trial, run, confidence.get(trial.pk), resolutions.get(trial.pk)) for run, trial in apart
    ]
    disagreements.sort(
        key=lambda disagreement: (
            disagreement.resolution is not None,
            -(disagreement.confidence or 0.0),
            -disagreement.trial.pk,
        )
    )
    table.weak = [disagreement for disagreement in disagreements if disagreement.cell == "weak"]
    table.fooled = [disagreement for disagreement in disagreements if disagreement.cell == "fooled"]
    return table


def _confidence(keys: list[int]) -> dict[int, float | None]:
    """Return the judge's confidence by trial. One query."""
    if not keys:
        return {}
    rows = JudgingRecord.objects.filter(trial__in=keys, counts=True)
    value = Cast(KeyTransform("confidence", "content"), FloatField())
    return dict(
        rows.annotate(sure=value).order_by(F("sure").asc(nulls_first=True)).values_list("trial", "sure")
    )

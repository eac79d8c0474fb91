"""Compare judge versions with people's labels and each other, and find where judge and gates disagree."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from django.db.models import Exists, F, FloatField, OuterRef, QuerySet
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast

from evalhub.teams.models import Project
from evaluators.statistics.calibration import (
    Calibration,
    JudgeRate,
    Label,
    calibrate,
    flip_rate,
    judge_rate,
    missing_labels,
)
from runs.models import JudgeCalibration, JudgingRecord, Resolution, Review, Run, Trial
from runs.models.judging import ReviewWord
from runs.models.review import Right
from runs.models.run import OPEN
from runs.results.digests import DigestedTrial, judged_trials


def uncalibrated_judges(run: Run) -> list[JudgeVersion]:
    """Return the judge versions that decide in a run and are not calibrated, by name. One query."""
    judgings = JudgingRecord.objects.filter(~_is_calibrated(run.project), trial__run=run, counts=True)
    rows = judgings.order_by("model", "rubric").values_list("model", "rubric").distinct()
    return [JudgeVersion(*row) for row in rows]


def _is_calibrated(project: Project) -> Exists:
    return Exists(
        JudgeCalibration.objects.filter(
            JudgeCalibration.calibrated(project), model=OuterRef("model"), rubric=OuterRef("rubric")
        )
    )


def with_facts(judgings: QuerySet[JudgingRecord], project: Project) -> QuerySet[JudgingRecord]:
    """Return the judgings with what `Facts` reads."""
    return judgings.annotate(
        known_calibrated=_is_calibrated(project),
        has_reviews=Exists(Review.objects.filter(judging=OuterRef("pk"))),
    )


class JudgingFacts:
    """Facts of one judging of `with_facts`."""

    def __init__(self, judging: JudgingRecord) -> None:
        values = vars(judging)
        self.unsure: bool = judging.counts and not values["known_calibrated"]
        """Whether its judge decides and is not calibrated."""
        self.is_reviewed: bool = values["has_reviews"]


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


MOST_REPEATED = 500
"""Flip rates and drift are computed from the newest trials, and from the newest judgings made again."""


class JudgeVersion(NamedTuple):
    """A judge's model and the hash of its rubric or prompt."""

    model: str
    rubric: str

    def __str__(self) -> str:
        return f"{self.model or 'unknown model'} · {self.rubric or 'unknown rubric'}"

    @property
    def value(self) -> str:
        """Return the version for an address or a form."""
        return f"{self.rubric}:{self.model}"

    @classmethod
    def of(cls, value: str) -> JudgeVersion | None:
        """Return the version of such a value; None for another text."""
        rubric, colon, model = value.partition(":")
        return cls(model, rubric) if colon else None


@dataclass(frozen=True)
class Calibrated:
    """A judge version with everything that people's answers say of it."""

    version: JudgeVersion
    whole: Calibration
    criteria: dict[str, Calibration]
    is_calibrated: bool
    missing_passing: int
    missing_failing: int
    among_disagreements: JudgeRate = field(default_factory=lambda: JudgeRate(0))
    """How often the judge was right where it disagreed with gates; not a random sample."""
    flips: JudgeRate = field(default_factory=lambda: JudgeRate(0))

    @property
    def needs(self) -> str:
        """Return what is missing, as a sentence; empty with enough labels."""
        parts = [(self.missing_passing, "passing"), (self.missing_failing, "failing")]
        named = [f"{n} more {kind} label{'s' if n != 1 else ''}" for n, kind in parts if n]
        if named:
            return f"{' and '.join(named)} needed."
        return (
            "" if self.is_calibrated else "Enough labels, but a lower bound is below the project's threshold."
        )


def recalibrate(project: Project, version: JudgeVersion) -> None:
    """Rewrite the stored calibration of a judge version. Requires a transaction; two queries."""
    whole = calibrate(_labels(project, version)[0])
    JudgeCalibration.objects.update_or_create(
        project=project,
        model=version.model,
        rubric=version.rubric,
        defaults={
            "passing": whole.passing,
            "failing": whole.failing,
            "lower": min(whole.true_positive.lower, whole.true_negative.lower),
        },
    )


def _labels(project: Project, version: JudgeVersion) -> tuple[list[Label], dict[str, list[Label]]]:
    """Return the labels of verdicts, and those of each criterion, by the newest review of each. One query."""
    own = _judgings_of(project, version).filter(pk=OuterRef("judging"))
    rows = Review.objects.filter(Exists(own), polarity__in=("verdict", "criterion"))
    threshold = "judging__trial__scenario_version__content__criteria__judge__pass_threshold"
    columns = ("word", "judging__passed", "judging__content__criteria", threshold)
    newest = {
        row[:3]: row[3:]
        for row in rows.order_by("at", "pk").values_list("judging", "polarity", "position", *columns)
    }
    verdicts: list[Label] = []
    criteria: defaultdict[str, list[Label]] = defaultdict(list)
    for (_, polarity, position), (word, passed, scores, least) in newest.items():
        if word == ReviewWord.UNCLEAR:
            continue
        agrees = word == ReviewWord.AGREE
        if polarity == "verdict":
            verdicts.append(Label(passed == agrees, passed))
        elif position < len(names := sorted(scores or {})):
            reached = scores[names[position]] >= (0.5 if least is None else least)
            criteria[names[position]].append(Label(reached == agrees, reached))
    return verdicts, dict(sorted(criteria.items()))


def judge_versions(project: Project) -> list[JudgeVersion]:
    """Return the judge versions of a project's closed runs by name. One query."""
    rows = JudgeCalibration.objects.filter(project=project).order_by("model", "rubric")
    return [JudgeVersion(*row) for row in rows.values_list("model", "rubric")]


def calibration_of(project: Project, version: JudgeVersion, repeated: Repeated) -> Calibrated:
    """Return a judge version's calibration. Two queries."""
    verdicts, criteria = _labels(project, version)
    whole = calibrate(verdicts)
    return Calibrated(
        version,
        whole,
        {name: calibrate(own) for name, own in criteria.items()},
        whole.is_calibrated(project.judge_labels, project.judge_rate),
        missing_labels(whole.passing, project.judge_labels),
        missing_labels(whole.failing, project.judge_labels),
        _among_disagreements(project, version),
        flips_of(repeated, version),
    )


def _judgings_of(project: Project, version: JudgeVersion) -> QuerySet[JudgingRecord]:
    """Return a judge version's judgings.

    Ask by `Exists` whether a row is about one: of a join SQLite would read the project's runs first.
    """
    return JudgingRecord.objects.filter(
        trial__run__project=project, model=version.model, rubric=version.rubric
    )


def _among_disagreements(project: Project, version: JudgeVersion) -> JudgeRate:
    judged = _judgings_of(project, version).filter(trial=OuterRef("trial"), counts=True)
    rows = Resolution.objects.filter(Exists(judged))
    decided = rows.exclude(right=Right.BOTH_FINE).values_list("right", flat=True)
    return judge_rate([right == Right.GATE_WEAK for right in decided])


class JudgeDrift(NamedTuple):
    """Two judge versions on the same trials."""

    first: JudgeVersion
    second: JudgeVersion
    trials: int
    same: int
    """Trials with the same verdict."""
    mean_difference: float
    """Mean score of the second minus that of the first."""


Repeated = dict[int, dict[JudgeVersion, list[tuple[float, bool]]]]
"""Scores and verdicts by trial and judge version."""


def repeated_judgings(project: Project) -> Repeated:
    """Return judgings of the newest trials and those made again, by trial and judge version. Three queries."""
    trial = Trial.objects.filter(pk=OuterRef("trial"), run__project=project)
    again = JudgingRecord.objects.filter(Exists(trial), counts=False).order_by("-pk")
    trials = set(again.values_list("trial", flat=True)[:MOST_REPEATED])
    runs = Run.objects.filter(project=project).values("pk")
    newest = Trial.objects.filter(run__in=runs).order_by("-run_id", "-pk")
    trials.update(newest.values_list("pk", flat=True)[:MOST_REPEATED])
    rows = JudgingRecord.objects.filter(trial__in=trials, passed__isnull=False, score__isnull=False)
    judgings: Repeated = defaultdict(lambda: defaultdict(list))
    columns = ("trial", "model", "rubric", "score", "passed")
    for trial, model, rubric, score, passed in rows.order_by("-pk").values_list(*columns):
        judgings[trial][JudgeVersion(model, rubric)].append((score, bool(passed)))
    return judgings


def flips_of(repeated: Repeated, version: JudgeVersion) -> JudgeRate:
    """Return how often the judge contradicts itself on the same trial."""
    return flip_rate(
        [passed for _, passed in answers[version]] for answers in repeated.values() if version in answers
    )


def find_drifts(repeated: Repeated) -> list[JudgeDrift]:
    """Return the pairs of judge versions that judged the same trials, each by its first judging of a trial."""
    pairs: defaultdict[tuple[JudgeVersion, JudgeVersion], list[tuple[float, bool]]] = defaultdict(list)
    for answers in repeated.values():
        for first, second in combinations(sorted(answers), 2):
            (one, passed), (other, again) = answers[first][-1], answers[second][-1]
            pairs[first, second].append((other - one, passed == again))
    return [_drift(first, second, found) for (first, second), found in sorted(pairs.items())]


def _drift(first: JudgeVersion, second: JudgeVersion, steps: list[tuple[float, bool]]) -> JudgeDrift:
    n = len(steps)
    return JudgeDrift(first, second, n, sum(same for _, same in steps), sum(step for step, _ in steps) / n)


def calibrated_versions(project: Project) -> frozenset[JudgeVersion]:
    """Return the calibrated judge versions. One query."""
    rows = JudgeCalibration.objects.filter(JudgeCalibration.calibrated(project))
    return frozenset(JudgeVersion(*row) for row in rows.values_list("model", "rubric"))

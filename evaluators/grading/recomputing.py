"""Compute scores again from others that a person changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from evaluators.grading.evaluator import LAYER, EvaluatorResult, score_and_threshold, verdict_of_score
from evaluators.grading.judges import rubric_judge
from evaluators.grading.judges.checklist_judge import ChecklistJudge
from evaluators.grading.scores import Evaluator
from evaluators.grading.scores.composite_evaluator import CompositeEvaluator
from evaluators.grading.scores.weighted_score import aggregate, find_failed_required
from evaluators.model import Score
from evaluators.statistics.descriptive import weighted_mean


def judge_from_criteria(judge: Score, criteria: Sequence[Score], threshold: float) -> Score:
    """Return the rubric judge's score as the weighted mean of its criteria; unchanged if all weigh 0.

    A judge that only informs keeps doing so.
    """
    known = [(each.value, each.weight) for each in criteria if each.value is not None]
    if not sum(weight for _, weight in known):
        return judge
    mean = round(weighted_mean(known), 12)
    reached = rubric_judge.reaches_threshold(mean, threshold)
    informs = judge.passed is None and not judge.error
    message = f"Judge score {score_and_threshold(mean, threshold, reached=reached)}, from overruled criteria."
    return msgspec.structs.replace(
        judge, value=mean, passed=None if informs else reached, message=message, error=""
    )


def checklist_named(evaluators: Sequence[Evaluator], name: str) -> ChecklistJudge | None:
    """Return the rubric evaluator whose score has this name; members of a composite are `<composite>/<member>`."""
    for evaluator in evaluators:
        if isinstance(evaluator, ChecklistJudge) and evaluator.label == name:
            return evaluator
        if isinstance(evaluator, CompositeEvaluator) and name.startswith(f"{evaluator.label}/"):
            return checklist_named(evaluator.evaluators, name.removeprefix(f"{evaluator.label}/"))
    return None


def with_value(score: Score, value: float, *, failed: bool = False) -> Score:
    """Return an evaluator's score with another value and the verdict that follows."""
    detail = {**score.detail, "verdict": verdict_of_score(EvaluatorResult(value, failed=failed))}
    return msgspec.structs.replace(score, value=value, detail=detail, error="")


def evaluators_from_members(
    evaluators: Sequence[Evaluator], scores: Mapping[str, Score], fixed: Collection[str]
) -> dict[str, Score]:
    """Return the evaluators' scores by name, averages computed again from their members.

    Fixed ones stay, and so do composites that a script or a model combines.
    """
    known = _average(evaluators, dict(scores), fixed, "")
    evaluator_scores = [known[each.label] for each in evaluators if each.label in known]
    total = known.get("score")
    if (
        total is not None
        and total.layer == LAYER
        and "score" not in fixed
        and len(evaluator_scores) == len(evaluators)
    ):
        stored = total.detail.get("threshold", 1.0)
        threshold = stored if isinstance(stored, int | float) else 1.0
        known["score"] = aggregate(
            evaluator_scores, threshold, find_failed_required(evaluators, evaluator_scores, threshold)
        )
    return known


def _average(
    evaluators: Sequence[Evaluator], known: dict[str, Score], fixed: Collection[str], prefix: str
) -> dict[str, Score]:
    for evaluator in evaluators:
        name = f"{prefix}{evaluator.label}"
        if not isinstance(evaluator, CompositeEvaluator) or name not in known:
            continue
        known = _average(evaluator.evaluators, known, fixed, f"{name}/")
        members = [known.get(f"{name}/{member.label}") for member in evaluator.evaluators]
        if name not in fixed and all(member is not None for member in members):
            plain = [
                msgspec.structs.replace(member, name=inner.label)
                for inner, member in zip(evaluator.evaluators, members, strict=True)
                if member is not None
            ]
            average = evaluator.averaged(plain)
            known[name] = msgspec.structs.replace(average, name=name) if average else known[name]
    return known

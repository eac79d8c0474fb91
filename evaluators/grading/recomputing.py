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
    reached = rubric_judge.reaches(mean, threshold)
    informs = judge.passed is None and not judge.error
    message = f"Judge score {score_and_threshold(mean, threshold, reached=reached)}, from overruled criteria."
    return msgspec.structs.replace(
        judge, value=mean, passed=None if informs else reached, message=message, error=""
    )


def checklist_named(evaluators: Sequence[Evaluator], name: str) -> ChecklistJudge | None:
    """Return the rubric evaluator whose score has this name; members of a composite are `<composite>/<member>`."""
    for each in evaluators:
        if isinstance(each, ChecklistJudge) and each.label == name:
            return each
        if isinstance(each, CompositeEvaluator) and name.startswith(f"{each.label}/"):
            return checklist_named(each.evaluators, name.removeprefix(f"{each.label}/"))
    return None


def with_value(score: Score, value: float, *, failed: bool = False) -> Score:
    """Return an evaluator's score with another value and the verdict that follows."""
    detail = {**score.detail, "verdict": verdict_of_score(EvaluatorResult(value, failed=failed))}
    return msgspec.structs.replace(score, value=value, detail=detail, error="")


def evaluators_from_members(
    evaluators: Sequence[Evaluator], found: Mapping[str, Score], fixed: Collection[str]
) -> dict[str, Score]:
    """Return the evaluators' scores by name, averages computed again from their members.

    Fixed ones stay, and so do composites that a script or a model combines.
    """
    known = _average(evaluators, dict(found), fixed, "")
    own = [known[each.label] for each in evaluators if each.label in known]
    total = known.get("score")
    if total is not None and total.layer == LAYER and "score" not in fixed and len(own) == len(evaluators):
        given = total.detail.get("threshold", 1.0)
        threshold = given if isinstance(given, int | float) else 1.0
        known["score"] = aggregate(own, threshold, find_failed_required(evaluators, own, threshold))
    return known


def _average(
    evaluators: Sequence[Evaluator], known: dict[str, Score], fixed: Collection[str], prefix: str
) -> dict[str, Score]:
    for each in evaluators:
        name = f"{prefix}{each.label}"
        if not isinstance(each, CompositeEvaluator) or name not in known:
            continue
        known = _average(each.evaluators, known, fixed, f"{name}/")
        members = [known.get(f"{name}/{member.label}") for member in each.evaluators]
        if name not in fixed and all(member is not None for member in members):
            plain = [
                msgspec.structs.replace(member, name=own.label)
                for own, member in zip(each.evaluators, members, strict=True)
                if member is not None
            ]
            made = each.averaged(plain)
            known[name] = msgspec.structs.replace(made, name=name) if made else known[name]
    return known

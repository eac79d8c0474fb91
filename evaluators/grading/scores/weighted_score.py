"""AgentV's layer: the evaluators' scores and their weighted mean (AgentV evaluation, Score Aggregation)."""

from __future__ import annotations

from collections.abc import Sequence

from evaluators.grading.evaluator import LAYER, Case, score_and_threshold
from evaluators.grading.evidence import Evidence
from evaluators.grading.scores import Evaluator
from evaluators.model import Score
from evaluators.statistics.descriptive import weighted_mean

NAME = "score"
"""The name of the score that decides."""

_ROUNDING = 1e-9


def scores(
    evaluators: Sequence[Evaluator], threshold: float, case: Case, evidence: Evidence
) -> tuple[Score, ...]:
    """Return the aggregate, then every evaluator's score; nothing without evaluators."""
    if not evaluators:
        return ()
    found = [evaluator.evaluate(case, evidence) for evaluator in evaluators]
    own = [scores[0] for scores in found]
    whole = aggregate(own, threshold, find_failed_required(evaluators, own, threshold))
    return (whole, *(score for scores in found for score in scores))


def find_failed_required(
    evaluators: Sequence[Evaluator], found: Sequence[Score], threshold: float
) -> tuple[str, ...]:
    """Return a sentence for each required evaluator below its lowest score, by default the threshold."""
    limits = [
        (one.min_score or threshold, score)
        for one, score in zip(evaluators, found, strict=True)
        if one.required
    ]
    return tuple(
        f"{score.name} is required: {score_and_threshold(score.value, least, reached=False)}"
        for least, score in limits
        if score.value is not None and score.value < least - _ROUNDING
    )


def aggregate(found: Sequence[Score], threshold: float = 1.0, blocked: Sequence[str] = ()) -> Score:
    """Return the weighted mean of evaluators' scores; its status is fail below the threshold.

    If a score is missing there is no mean, but the aggregate fails if even a missing score of 1.0 could not
    reach the threshold. If required evaluators failed, `blocked` says which; then it is 0.
    """
    missing = [] if blocked else [score.name for score in found if score.value is None]
    best = weighted_mean((1.0 if score.value is None else score.value, score.weight) for score in found)
    best = 0.0 if blocked else best
    reached = not blocked and best >= threshold - _ROUNDING
    detail = {
        "status": ("error" if missing else "pass") if reached else "fail",
        "threshold": threshold,
        "hits": _gather_texts(found, "hits"),
        "misses": _gather_texts(found, "misses"),
        "reasoning": _reasoning(found),
    }
    if missing:
        message = f"No score: {', '.join(missing)} returned none."
        return Score(LAYER, NAME, None, None if reached else False, message, detail)
    message = ". ".join((f"Score {score_and_threshold(best, threshold, reached=reached)}", *blocked)) + "."
    return Score(LAYER, NAME, best, reached, message, detail)


def _gather_texts(found: Sequence[Score], key: str) -> list[str]:
    return [text for score in found for text in score.detail.get(key, ())]


def _reasoning(found: Sequence[Score]) -> str:
    reasons = [(score.name, score.detail.get("reasoning")) for score in found]
    return " | ".join(f"{name}: {reason}" for name, reason in reasons if reason)

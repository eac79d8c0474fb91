"""AgentV's layer: the evaluators' scores and their weighted mean (AgentV evaluation, Score Aggregation)."""

from __future__ import annotations

from collections.abc import Sequence

from evaluators.grading.evaluator import LAYER, Case, TrialEvidence, score_and_threshold
from evaluators.grading.scores import Evaluator
from evaluators.model import Score
from evaluators.statistics.descriptive import weighted_mean

NAME = "score"
"""The name of the score that decides."""

_ROUNDING = 1e-9


def score_evaluators(
    evaluators: Sequence[Evaluator], threshold: float, case: Case, evidence: TrialEvidence
) -> tuple[Score, ...]:
    """Return the aggregate, then every evaluator's score; nothing without evaluators."""
    if not evaluators:
        return ()
    results = [evaluator.evaluate(case, evidence) for evaluator in evaluators]
    evaluator_scores = [scores[0] for scores in results]
    whole = aggregate(
        evaluator_scores, threshold, find_failed_required(evaluators, evaluator_scores, threshold)
    )
    return (whole, *(score for scores in results for score in scores))


def find_failed_required(
    evaluators: Sequence[Evaluator], scores: Sequence[Score], threshold: float
) -> tuple[str, ...]:
    """Return a sentence for each required evaluator below its lowest score, by default the threshold."""
    limits = [
        (one.min_score or threshold, score)
        for one, score in zip(evaluators, scores, strict=True)
        if one.required
    ]
    return tuple(
        f"{score.name} is required: {score_and_threshold(score.value, least, reached=False)}"
        for least, score in limits
        if score.value is not None and score.value < least - _ROUNDING
    )


def aggregate(scores: Sequence[Score], threshold: float = 1.0, blocked: Sequence[str] = ()) -> Score:
    """Return the weighted mean of evaluators' scores; its status is fail below the threshold.

    If a score is missing there is no mean, but the aggregate fails if even a missing score of 1.0 could not
    reach the threshold. If required evaluators failed, `blocked` says which; then it is 0.
    """
    missing = [] if blocked else [score.name for score in scores if score.value is None]
    best = weighted_mean((1.0 if score.value is None else score.value, score.weight) for score in scores)
    best = 0.0 if blocked else best
    reached = not blocked and best >= threshold - _ROUNDING
    detail = {
        "status": ("error" if missing else "pass") if reached else "fail",
        "threshold": threshold,
        "hits": _gather_texts(scores, "hits"),
        "misses": _gather_texts(scores, "misses"),
        "reasoning": _reasoning(scores),
    }
    if missing:
        message = f"No score: {', '.join(missing)} returned none."
        return Score(LAYER, NAME, None, None if reached else False, message, detail)
    message = ". ".join((f"Score {score_and_threshold(best, threshold, reached=reached)}", *blocked)) + "."
    return Score(LAYER, NAME, best, reached, message, detail)


def _gather_texts(scores: Sequence[Score], key: str) -> list[str]:
    return [text for score in scores for text in score.detail.get(key, ())]


def _reasoning(scores: Sequence[Score]) -> str:
    reasons = [(score.name, score.detail.get("reasoning")) for score in scores]
    return " | ".join(f"{name}: {reason}" for name, reason in reasons if reason)

"""The rubric judge of llm-tool-test: a model scores a trial by a rubric (Layer 3)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec

from evaluators.grading.evaluator import score_and_threshold
from evaluators.grading.evidence import Evidence
from evaluators.grading.judges.llm_judge import add_cost
from evaluators.grading.judges.rubric import JudgeCriteria
from evaluators.grading.judges.rubric_prompt import SYSTEM, repair_prompt, rubric_prompt
from evaluators.grading.judges.rubric_reply import BadReply, RubricReply, contradiction, read_reply
from evaluators.grading.judges.statement_reply import read_statements
from evaluators.model import (
    Complete,
    Completion,
    CompletionError,
    CompletionRequest,
    Judging,
    Score,
)

NAME = "judge"
"""The score that decides. Each call adds a score `judging`, each criterion a score `criterion.<id>`."""


def scores(criteria: JudgeCriteria | None, evidence: Evidence, so_far: Sequence[Score]) -> tuple[Score, ...]:
    """Return the judge's verdict, its judgings and its criteria; nothing if the judge is off."""
    if criteria is None or not criteria.enabled:
        return ()
    if criteria.when == "gates_pass" and any(
        score.layer == "gates" and score.passed is False for score in so_far
    ):
        return (Score("judge", NAME, message="Not judged: a gate failed."),)
    if evidence.complete is None:
        sentence = "The judge has no model. Choose a judge, or turn it off."
        return (Score("judge", NAME, message=sentence, error=sentence),)
    judgings = [judge(criteria, evidence, evidence.complete) for _ in range(max(1, criteria.judgings))]
    return combine_judgings(criteria, judgings)


def combine_judgings(criteria: JudgeCriteria, judgings: Sequence[Judging]) -> tuple[Score, ...]:
    """Return the scores of one or more judgings; their mean decides. Without a usable one, return an error."""
    judging_scores = tuple(
        Score("judge", "judging", one.score, message=one.error, judging=one) for one in judgings
    )
    good = [one for one in judgings if one.score is not None]
    if not good:
        return (Score("judge", NAME, message=judgings[0].error, error=judgings[0].error), *judging_scores)
    # Without rounding, the mean of equal scores can be slightly below them.
    mean = round(fmean(one.score for one in good if one.score is not None), 12)
    passed = reaches(mean, criteria.pass_threshold)
    message = f"Judge score {score_and_threshold(mean, criteria.pass_threshold, reached=passed)}."
    return (Score("judge", NAME, mean, passed, message), *judging_scores, *_criteria(criteria, good))


def reaches(score: float, threshold: float) -> bool:
    """Return whether a judge's score passes: it is at least the threshold."""
    return score >= threshold


def _criteria(criteria: JudgeCriteria, judgings: Sequence[Judging]) -> list[Score]:
    scores = []
    for criterion in criteria.rubric.criteria:
        values = [one.criteria[criterion.id] for one in judgings if criterion.id in one.criteria]
        value = fmean(values) if values else None
        scores.append(
            Score(
                "judge",
                f"criterion.{criterion.id}",
                value,
                message=criterion.description,
                weight=criterion.weight,
            )
        )
    return scores


def judge(criteria: JudgeCriteria, evidence: Evidence, complete: Complete) -> Judging:
    """Ask the judge, and once more after an unusable answer. Never raises."""
    prompt = rubric_prompt(criteria.rubric, evidence)
    asked = Judging(
        model=criteria.model, rubric=criteria.rubric.short_hash, system_prompt=SYSTEM, user_prompt=prompt
    )
    answers: list[Completion] = []
    try:
        answers.append(complete(CompletionRequest(prompt, SYSTEM, criteria.model, evidence.key)))
        try:
            reply = _read(answers[0].text, criteria)
        except BadReply as error:
            complaint = _at_limit(answers[0], "Write a shorter one.") + str(error)
            repair = repair_prompt(prompt, answers[0].text, complaint, criteria.rubric, scored=error.scored)
            answers.append(complete(CompletionRequest(repair, SYSTEM, criteria.model, evidence.key)))
            reply = _read(answers[1].text, criteria)
    except CompletionError as error:
        return add_cost(asked, answers, evidence, error=str(error))
    except BadReply as error:
        sentence = "The judge's answer was unusable, even after one request to correct it. "
        limit = _at_limit(answers[-1], "Raise the judge's `max_output_tokens`.")
        return add_cost(asked, answers, evidence, error=f"{sentence}{limit}{error}")
    return _judge_reply(add_cost(asked, answers, evidence), reply, criteria)


def _read(text: str, criteria: JudgeCriteria) -> RubricReply:
    """Return the answer in a text. Raises `BadReply`, also for a wrong total if the scenario says so."""
    if criteria.rubric.form == "statements":
        return read_statements(text, criteria.rubric)
    reply = read_reply(text, criteria.rubric)
    if criteria.on_mismatch == "error" and reply.mismatch and reply.recomputed is not None:
        raise BadReply(contradiction(reply.weighted_score, reply.recomputed), scored=True)
    return reply


def _at_limit(answer: Completion, advice: str) -> str:
    return f"The answer was cut off at the token limit. {advice} " if answer.cut_off else ""


def _judge_reply(judging: Judging, reply: RubricReply, criteria: JudgeCriteria) -> Judging:
    return msgspec.structs.replace(
        judging,
        score=reply.weighted_score,
        passed=reaches(reply.weighted_score, criteria.pass_threshold),
        recomputed=reply.recomputed,
        mismatch=reply.mismatch,
        criteria=reply.scores,
        reasons=reply.reasons,
        missing=reply.missing,
        positives=reply.highlights,
        negatives=reply.issues,
        confidence=reply.confidence,
        warnings=judging.warnings + reply.warnings,
    )

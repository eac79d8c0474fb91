"""Reads what an LLM judge answered (AgentV evaluation, LLM Judge Evaluator JSON Contract)."""

from __future__ import annotations

from msgspec import Struct

from evaluators.judging.reply import first_object
from evaluators.model import Json
from evaluators.scoring.base import clamped, sentences

MOST = 4
"""Hits or misses that are kept."""


class JudgeReply(Struct, frozen=True):
    """A judge's answer as it counts."""

    score: float = 0.0
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str = ""
    failure: str = ""
    """Why the score is 0 by the judge's own fault, in a sentence."""


def read_judge_reply(text: str) -> JudgeReply:
    """Return the first JSON object of a text: its score clamped, its lists trimmed to four entries.

    Without one, or without a number in it, the score is 0 and the failure is the judge's own.
    """
    found = first_object(text, mend=False)
    if found is None:
        return JudgeReply(failure="The judge's answer holds no JSON object, so the score is 0.")
    score = clamped(found.get("score"))
    return JudgeReply(
        score=score or 0.0,
        hits=sentences(found.get("hits"), most=MOST),
        misses=sentences(found.get("misses"), most=MOST),
        reasoning=_text(found.get("reasoning")),
        failure="" if score is not None else "The judge's answer holds no score, so the score is 0.",
    )


def _text(value: Json) -> str:
    return value.strip() if isinstance(value, str) else ""

"""A model as judge, without a rubric."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from evaluators.evaluator import BaseEvaluator, Case, EvaluatorResult, clamped, sentences
from evaluators.evidence import Evidence
from evaluators.judges.llm_judge_prompt import SYSTEM, TEMPLATE, user_prompt, values
from evaluators.judges.rubric_reply import first_object
from evaluators.model import CompletionError, CompletionRequest, Json, Judging, same_model

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


NO_MODEL = "The judge could not be asked: no model is connected. Choose a judge, or leave its evaluators out."


def ask(user: str, system: str, model: str, evidence: Evidence) -> Judging:
    """Return a judging with the prompts and the raw answer; `error` where the model did not answer."""
    asked = Judging(model=model, system_prompt=system, user_prompt=user)
    if evidence.complete is None:
        return msgspec.structs.replace(asked, error=NO_MODEL)
    try:
        answered = evidence.complete(CompletionRequest(user, system, model))
    except CompletionError as error:
        return msgspec.structs.replace(asked, error=str(error))
    name = answered.model or model
    same = same_model(name, evidence.model)
    warning = f"The judge {name} is the model under test, which tends to favour itself."
    return msgspec.structs.replace(
        asked,
        model=name,
        raw_answer=answered.text,
        usage=answered.usage,
        cost_usd=answered.cost_usd,
        price=answered.price,
        notes=answered.notes,
        seconds=answered.seconds,
        warnings=(warning,) if same else (),
    )


class LlmJudge(BaseEvaluator):
    """A model gives the score, with what it found good and bad."""

    type: Literal["llm_judge"] = "llm_judge"
    prompt: str = ""
    """The template; empty for the one that comes with evalhub."""
    prompt_file: str = ""
    """Where the template comes from."""
    model: str = ""
    include_trace: bool = False

    @property
    def asks_model(self) -> bool:
        return True

    def find(self, case: Case, evidence: Evidence) -> EvaluatorResult:
        given = values(case, evidence)
        prompt = user_prompt(self.prompt or TEMPLATE, given, with_trace=self.include_trace)
        return judged(ask(prompt, SYSTEM, self.model, evidence))


def judged(judging: Judging) -> EvaluatorResult:
    """Return the finding of an answer; an error where there is none, score 0 where it cannot be read."""
    if judging.error:
        return EvaluatorResult(None, error=judging.error, judging=judging)
    reply = read_judge_reply(judging.raw_answer)
    kept = msgspec.structs.replace(
        judging,
        score=reply.score,
        positives=reply.hits,
        negatives=reply.misses,
        reasoning=reply.reasoning,
        error=reply.failure,
    )
    more = {"judge_failure": reply.failure} if reply.failure else {}
    return EvaluatorResult(reply.score, reply.hits, reply.misses, reply.reasoning, more=more, judging=kept)

"""AgentV's `llm_judge`: ask_judge a model for a score and read its answer (LLM Judge Evaluator JSON Contract)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from pydantic.json_schema import SkipJsonSchema

from evaluators.grading.evaluator import (
    BaseEvaluator,
    Case,
    EvaluatorResult,
    clamp_score,
    trimmed_text,
    trimmed_texts,
)
from evaluators.grading.evidence import Evidence
from evaluators.grading.judges.llm_judge_prompt import SYSTEM, TEMPLATE, collect_prompt_values, fill_template
from evaluators.grading.judges.rubric import hash_of
from evaluators.grading.judges.rubric_reply import first_object
from evaluators.model import (
    Completion,
    CompletionError,
    CompletionRequest,
    Judging,
    TextOrNone,
    same_model,
    total_usage,
)

MAX_ENTRIES = 4
"""The largest number of hits, and of misses."""


class JudgeReply(Struct, frozen=True):
    """A judge's answer, normalized."""

    score: float = 0.0
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str = ""
    failure: str = ""
    """Why the judge itself caused a score of 0, in a sentence."""


def read_judge_reply(text: str) -> JudgeReply:
    """Return the first JSON object of a text: score limited to 0 to 1, lists cut to four entries.

    Without an object or a number, the score is 0 and `failure` is set.
    """
    reply = first_object(text, repair=False)
    if reply is None:
        return JudgeReply(failure="The judge's answer contains no JSON object, so the score is 0.")
    score = clamp_score(reply.get("score"))
    return JudgeReply(
        score=score or 0.0,
        hits=trimmed_texts(reply.get("hits"), most=MAX_ENTRIES),
        misses=trimmed_texts(reply.get("misses"), most=MAX_ENTRIES),
        reasoning=trimmed_text(reply.get("reasoning")),
        failure="" if score is not None else "The judge's answer contains no score, so the score is 0.",
    )


NO_MODEL = "The judge has no model. Choose a judge, or run without judges."


def ask_judge(user: str, system: str, model: str, evidence: Evidence, *, rubric: str) -> Judging:
    """Return a judging with the prompts and the raw answer; `error` if the model did not answer."""
    asked = Judging(model=model, rubric=rubric, system_prompt=system, user_prompt=user)
    if evidence.complete is None:
        return msgspec.structs.replace(asked, error=NO_MODEL)
    try:
        answered = evidence.complete(CompletionRequest(user, system, model, evidence.key))
    except CompletionError as error:
        return msgspec.structs.replace(asked, error=str(error))
    return add_cost(asked, [answered], evidence)


def add_cost(
    asked: Judging, answers: Sequence[Completion], evidence: Evidence, *, error: str = ""
) -> Judging:
    """Return the judging with the cost of its answers, and a warning if the judge judges itself."""
    if not answers:
        return msgspec.structs.replace(asked, error=error)
    model = answers[-1].model or asked.model
    same = same_model(model, evidence.model)
    costs = [answer.cost_usd for answer in answers if answer.cost_usd is not None]
    return msgspec.structs.replace(
        asked,
        model=model,
        raw_answer=answers[-1].text,
        repaired=len(answers) > 1,
        usage=total_usage(answer.usage for answer in answers),
        cost_usd=sum(costs) if costs else None,
        price=answers[-1].price,
        notes=tuple(note for answer in answers for note in answer.notes),
        seconds=sum(answer.seconds for answer in answers),
        error=error,
        warnings=(f"The judge {model} is the model under test; models tend to favour themselves.",)
        if same
        else (),
    )


class LlmJudge(BaseEvaluator):
    """A model scores the answer and lists hits and misses."""

    type: Literal["llm_judge"] = "llm_judge"
    prompt: TextOrNone = ""
    """The prompt template; empty for evalhub's default."""
    prompt_file: SkipJsonSchema[str] = ""
    """The file of the template, if any."""
    model: str = ""
    include_trace: bool = False

    @property
    def asks_model(self) -> bool:
        return True

    def find(self, case: Case, evidence: Evidence) -> EvaluatorResult:
        values = collect_prompt_values(case, evidence)
        prompt = fill_template(self.prompt or TEMPLATE, values, with_trace=self.include_trace)
        judging = ask_judge(prompt, SYSTEM, self.model, evidence, rubric=hash_of(self.prompt or TEMPLATE))
        return result_of_judging(judging)


def result_of_judging(judging: Judging) -> EvaluatorResult:
    """Return the result of an answer: an error without an answer, score 0 if it is unreadable."""
    if judging.error:
        return EvaluatorResult(None, error=judging.error, judging=judging)
    reply = read_judge_reply(judging.raw_answer)
    judging = msgspec.structs.replace(
        judging,
        score=reply.score,
        positives=reply.hits,
        negatives=reply.misses,
        reasoning=reply.reasoning,
        error=reply.failure,
    )
    more = {"judge_failure": reply.failure} if reply.failure else {}
    return EvaluatorResult(reply.score, reply.hits, reply.misses, reply.reasoning, more=more, judging=judging)

"""A model as judge, without a rubric."""

from __future__ import annotations

from typing import Literal

import msgspec

from evaluators.evidence import Evidence
from evaluators.model import Judging
from evaluators.scoring.asking import ask
from evaluators.scoring.base import BaseEvaluator, Finding
from evaluators.scoring.case import Case
from evaluators.scoring.judge_prompt import SYSTEM, TEMPLATE, user_prompt, values
from evaluators.scoring.judge_reply import read_judge_reply


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

    def find(self, case: Case, evidence: Evidence) -> Finding:
        given = values(case, evidence)
        prompt = user_prompt(self.prompt or TEMPLATE, given, with_trace=self.include_trace)
        return judged(ask(prompt, SYSTEM, self.model, evidence))


def judged(judging: Judging) -> Finding:
    """Return the finding of an answer; an error where there is none, score 0 where it cannot be read."""
    if judging.error:
        return Finding(None, error=judging.error, judging=judging)
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
    return Finding(reply.score, reply.hits, reply.misses, reply.reasoning, more=more, judging=kept)

"""Cases and what was seen, in few words."""

from __future__ import annotations

from typing import Any

from evaluators.grading.assertions import (
    VERDICT,
    CaseVerdict,
    Expect,
    ToolCall,
    ToolParam,
    TrialFacts,
    case_verdict,
    check_assertions,
)
from evaluators.grading.evaluate import Criteria, Evaluation, evaluate
from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.template_tokens import TokenSources
from evaluators.model import Event, Score, Transcript


def seen(answer: str = "", *calls: str | ToolCall, **more: Any) -> TrialFacts:
    """Facts with an answer and calls, those given by name alone without a word on their success."""
    made = tuple(ToolCall(call) if isinstance(call, str) else call for call in calls)
    if "seed" in more or "snapshot" in more:
        more["sources"] = TokenSources(more.pop("seed", None), more.pop("snapshot", None))
    return TrialFacts(answer, made, **more)


def judged(facts: TrialFacts, **expect: Any) -> CaseVerdict:
    return case_verdict(check_assertions(Expect(**expect), facts))


def failures(facts: TrialFacts, **expect: Any) -> tuple[str, ...]:
    return judged(facts, **expect).all_failures


def param(assertion: str, value: Any = "", *, name: str = "p") -> tuple[ToolParam, ...]:
    return (ToolParam(tool="t", param=name, assertion=assertion, value=value),)  # type: ignore[arg-type]


def call_events(name: str, success: bool | None = None, **input: Any) -> tuple[Event, Event]:
    return Event("tool_call", name=name, input=input), Event("tool_result", name=name, success=success)


def evaluated(expect: Expect | None, *calls: tuple[Event, Event], **given: Any) -> Evaluation:
    events = tuple(event for pair in calls for event in pair)
    return evaluate(Criteria(expect=expect), TrialEvidence(Transcript(events=events), **given))


def asserted(evaluation: Evaluation) -> dict[str, Score]:
    """The scores of the layer by their key."""
    return {score.name: score for score in evaluation.scores if score.layer == "assertions"}


def of_case(evaluation: Evaluation) -> Score:
    return asserted(evaluation)[VERDICT]

"""The base class of AgentV's evaluators, the evidence and the case they read, and the result they return."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from msgspec import Struct, structs
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticKnownError

from evalhub.lib.limits import LONGEST_NAME
from evaluators.model import (
    FROM_FILE,
    AgentResult,
    Amount,
    Complete,
    Json,
    Judging,
    Kind,
    LayerName,
    Score,
    StrictModel,
    Text,
    TextOrNone,
    Transcript,
    Workspace,
)
from evaluators.tool_use.interaction import Interaction, analyse
from evaluators.tool_use.recorded_commands import RecordedCall
from evaluators.tool_use.tool import Tool
from evaluators.transcripts.traces import as_trace, has_trace, summarize_trace


@dataclass(frozen=True)
class TrialEvidence(AgentResult):
    """Everything a layer may read. Workspace and model are injected."""

    transcript: Transcript
    workspace: Workspace | None = None
    """None if no command may run; gates that need one report *not run*."""
    bundle: Workspace | None = None
    """The uploaded files next to the scenario, separate from the workspace; None without any."""
    tool: Tool | None = None
    key: str = ""
    """The scenario's."""
    prompt: str = ""
    answer: str = field(default="", kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)
    complete: Complete | None = None
    model: str = ""
    """The model under test, for the warning about a judge that judges itself."""
    command_env: Mapping[str, str] = field(default_factory=dict)
    """The variables of judging commands: evalhub's own and the tool's, resolved."""
    seed: Json = None
    """The seed manifest for `{{seed:…}}` in expected values."""
    snapshot: Json = None
    """Data captured from live sources before the run, for `{{snapshot:…}}`."""
    count_tokens: Callable[[str], int] | None = None
    """A tokenizer of one's own for `maxTokens`; None counts characters / 4."""
    executes_tools: bool = True
    """False for a model that only names the tools it would call."""

    protected_changes: tuple[str, ...] = ()
    """Protected files that the agent changed, removed or added."""
    changed_files: tuple[str, ...] = ()
    """Paths of files in the workspace that the agent added, changed or removed, as far as they are known."""
    hides_skill: bool = False
    """Whether judges may not see if a skill was there, because trials with and without it are compared."""
    record: tuple[RecordedCall, ...] | None = None
    """The recorded executions of the tool; None if it was not recorded."""
    lost_calls: int = 0
    """Executions of the tool that could not be recorded."""

    @property
    def completed(self) -> bool:
        """Whether the agent's process exited with code 0 before the time limit."""
        return not self.timed_out and self.exit_code == 0

    @cached_property
    def interaction(self) -> Interaction:
        """The metrics of layer 1, computed once."""
        return analyse(
            self.transcript, self.tool, completed=self.completed, record=self.record, lost=self.lost_calls
        )


class ExpectedCall(StrictModel):
    """An expected tool call; without `input` any input matches, and `output` is not compared."""

    tool: Text
    input: Json = None
    output: Json = None


def _read_calls(value: Json) -> Json:
    return tuple(value or ()) if isinstance(value, list | None) else value


class Message(StrictModel):
    """One message of a conversation; `content` is text or a list of parts."""

    role: Literal["system", "user", "assistant", "tool"]
    content: Json = None
    tool_calls: Annotated[
        tuple[ExpectedCall, ...],
        BeforeValidator(_read_calls, json_schema_input_type=list[ExpectedCall] | None),
    ] = ()


class Case(StrictModel):
    """The question and the expected answer."""

    question: str = ""
    """The question as a judge reads it; empty to use the prompt."""
    expected_outcome: str = ""
    reference_answer: str = ""
    input_messages: tuple[Message, ...] = ()
    expected_messages: tuple[Message, ...] = ()
    input_files: tuple[str, ...] = ()
    """Paths of attachments in the uploaded files."""
    guidelines: tuple[str, ...] = ()
    """Paths of guideline files in the uploaded files."""
    prompt_values: dict[str, str] = Field(default_factory=dict)
    """Values of placeholders in judges' prompts that only the file knows, such as `metadata`."""


LAYER: LayerName = "evaluators"
PASS, BORDERLINE = 0.8, 0.6
"""Lowest scores of an evaluator's pass and borderline verdicts, which do not decide the trial."""


class EvaluatorResult(Struct, frozen=True):
    """The result of an evaluator: a score between 0 and 1, or the error."""

    value: float | None
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str = ""
    error: str = ""
    """Why there is no score; then `value` is None."""
    failed: bool = False
    """Whether its verdict is fail regardless of the score."""
    more: dict[str, Json] = {}
    judging: Judging | None = None


def _short(name: str, info: ValidationInfo) -> str:
    # A stored name may end with a number that makes it unique.
    if info.context == FROM_FILE and len(name) > LONGEST_NAME:
        raise PydanticKnownError("string_too_long", {"max_length": LONGEST_NAME})
    return name


class BaseEvaluator(Kind):
    """One evaluator of a scenario; each kind has its own `type`."""

    unrunnable: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("preprocessors", "transform"), "Remove it: answers are judged as they are."
    )
    """Keys of other versions that need what evalhub doesn't do; what to do instead."""

    name: Annotated[
        TextOrNone, AfterValidator(_short), Field(json_schema_extra={"maxLength": LONGEST_NAME})
    ] = ""
    """Empty to use the type as the name."""
    weight: Amount = 1.0
    negate: bool = False
    """Whether its score is 1 minus the result, such as of `not-contains`."""
    required: bool = False
    """Whether the aggregate is 0 if it scores below `min_score`, by default the threshold."""
    min_score: float | None = Field(default=None, gt=0, le=1)
    """The lowest score with the verdict pass; None for the usual one."""

    @property
    def needs_workspace(self) -> bool:
        """Whether it runs a command."""
        return False

    @property
    def asks_model(self) -> bool:
        """Whether it asks a model itself; members do not count."""
        return False

    @property
    def label(self) -> str:
        """The name of its score."""
        return self.name or self.type

    def evaluate(self, case: Case, evidence: TrialEvidence) -> tuple[Score, ...]:
        """Return its score, then those of its members. Never raises."""
        return (self.score(self.find(case, evidence)),)

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        """Evaluate the evidence."""
        raise NotImplementedError

    def score(self, result: EvaluatorResult) -> Score:
        """Return a result as a score that informs; the aggregate decides."""
        result = invert(result) if self.negate else result
        detail: dict[str, Json] = {
            "type": self.type,
            "verdict": verdict_of_score(result, self.min_score),
            "hits": list(result.hits),
            "misses": list(result.misses),
            "reasoning": result.reasoning,
            **result.more,
        }
        message = result.error or result.reasoning or "; ".join((*result.misses, *result.hits))
        return Score(
            LAYER, self.label, result.value, None, message, detail, result.error, self.weight, result.judging
        )


def invert(result: EvaluatorResult) -> EvaluatorResult:
    """Return the result of a negated evaluator: 1 minus the score, hits as misses; an error stays one."""
    if result.value is None:
        return result
    return structs.replace(
        result, value=1.0 - result.value, hits=result.misses, misses=result.hits, failed=False
    )


def verdict_of_score(result: EvaluatorResult, passing: float | None = None) -> str | None:
    """Return pass, borderline or fail for one evaluator, None without a score.

    `passing` is the evaluator's own lowest passing score; then nothing is borderline.
    """
    if result.value is None:
        return None
    if passing is not None:
        return "fail" if result.failed or result.value < passing else "pass"
    if result.failed or result.value < BORDERLINE:
        return "fail"
    return "pass" if result.value >= PASS else "borderline"


def clamp_score(score: Json) -> float | None:
    """Return a score limited to 0 to 1, None if it is not a number."""
    if isinstance(score, bool) or not isinstance(score, int | float):
        return None
    # `isnan` fails for whole numbers of more than 308 digits.
    if isinstance(score, float) and math.isnan(score):
        return None
    return float(min(max(score, 0), 1))


def trimmed_text(value: Json) -> str:
    """Return a text, trimmed; empty for anything else."""
    return value.strip() if isinstance(value, str) else ""


def trimmed_texts(value: Json, *, most: int | None = None) -> tuple[str, ...]:
    """Return the non-empty texts of a list, trimmed; nothing if it is not a list."""
    if not isinstance(value, list):
        return ()
    texts = [text.strip() for text in value if isinstance(text, str) and text.strip()]
    return tuple(texts[:most])


def trace_context(evidence: TrialEvidence) -> dict[str, Json]:
    """Return `candidate_trace` and `candidate_trace_summary`, both None without a trace."""
    if not has_trace(evidence.transcript):
        return {"candidate_trace": None, "candidate_trace_summary": None}
    events = evidence.transcript.events
    return {
        "candidate_trace": as_trace(events),
        "candidate_trace_summary": summarize_trace(events).as_json(),
    }


def judged_answer(evidence: TrialEvidence) -> str:
    """Return the judged answer."""
    return evidence.answer or evidence.transcript.answer


_MOST_PLACES = 9


def score_and_threshold(score: float, threshold: float, *, reached: bool) -> str:
    """Return `0.53, needs 0.70`, with more decimals if both would look equal."""
    texts = (f"{score:.{places}f}" for places in range(2, _MOST_PLACES + 1))
    shown = next((text for text in texts if (float(text) >= threshold) is reached), repr(score))
    needed = f"{threshold:.2f}" if round(threshold, 2) == threshold else f"{threshold:g}"
    return f"{shown}, needs {needed}"

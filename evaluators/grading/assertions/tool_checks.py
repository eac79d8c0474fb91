"""AgentV's checks of single tool calls: used or not, with which arguments, how many steps, which skill."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from evaluators.grading.assertions.tool_trajectory import NO_TRACE, call_arguments, matches_pattern
from evaluators.grading.evaluator import BaseEvaluator, Case, EvaluatorResult, TrialEvidence
from evaluators.json_values import are_equal
from evaluators.model import Count, Event, Json, Text
from evaluators.tool_use.calls import Call, pair_calls
from evaluators.transcripts.traces import TYPES, calls_of_trace, has_trace, shell_command

Names = Annotated[tuple[str, ...], Field(min_length=1)]
_COMMAND_TOOLS = frozenset(("exec_command", "local_shell", "shell"))
"""Tools whose calls are commands and not tools where steps are counted, as in AgentV after 4.42."""


class ToolUsed(BaseEvaluator):
    """How often each tool was called; names may contain `*` and `?`."""

    type: Literal["trajectory:tool-used"] = "trajectory:tool-used"
    tools: Names
    minimum: Count = 1
    maximum: Count | None = None

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        if not has_trace(evidence.transcript):
            return _without_trace(negated=self.negate)
        called = [event.name or "" for event in calls_of_trace(evidence.transcript.events)]
        counts = {tool: sum(matches_pattern(name, tool) for name in called) for tool in self.tools}
        return _pass_or_fail({f"calls of {tool}": count for tool, count in counts.items()}, self)


class StepCount(BaseEvaluator):
    """How many steps a trial has, of one kind or of any."""

    type: Literal["trajectory:step-count"] = "trajectory:step-count"
    step: Literal["tool", "command", "message", "any"] = "tool"
    pattern: str = ""
    """The steps whose tool name, command or text match, with `*` and `?`; empty for all."""
    minimum: Count = 0
    maximum: Count | None = None

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        if not has_trace(evidence.transcript):
            return _without_trace(negated=self.negate)
        steps = [texts for event in evidence.transcript.events if (texts := _step_texts(event, self.step))]
        count = sum(
            not self.pattern or any(matches_pattern(text, self.pattern) for text in texts) for texts in steps
        )
        return _pass_or_fail({"steps" if self.step == "any" else f"{self.step} steps": count}, self)


class ToolArguments(BaseEvaluator):
    """Whether a tool was called with arguments."""

    type: Literal["trajectory:tool-args-match"] = "trajectory:tool-args-match"
    tool: str = Field(min_length=1)
    args: dict[str, Json]
    mode: Literal["partial", "exact"] = "partial"
    """Partial compares the given keys, at any depth."""
    ignore: tuple[str, ...] = ()
    """Arguments of a call that `exact` doesn't compare."""

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        if not has_trace(evidence.transcript):
            return _without_trace(negated=self.negate)
        called = [
            event
            for event in calls_of_trace(evidence.transcript.events)
            if matches_pattern(event.name or "", self.tool)
        ]
        wanted = f"{self.tool} with {_short(self.args)}"
        if any(self._fits(call_arguments(event)) for event in called):
            return EvaluatorResult(1.0, hits=(f"Called {wanted}",))
        actual = "; ".join(_short(call_arguments(event)) for event in called[:3]) or "no call"
        return EvaluatorResult(0.0, misses=(f"Expected {wanted}, got {actual}",))

    def _fits(self, actual: Json) -> bool:
        if self.mode == "partial":
            return _includes(actual, self.args)
        compared = (
            {key: item for key, item in actual.items() if key not in self.ignore}
            if isinstance(actual, dict)
            else actual
        )
        return are_equal(self.args, compared)


class SkillTrigger(BaseEvaluator):
    """Whether the agent used a skill: by the tool `Skill`, or by reading a file of it."""

    type: Literal["skill-trigger"] = "skill-trigger"
    skill: Text
    should_trigger: bool = True

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        if not has_trace(evidence.transcript):
            return _without_trace(negated=self.negate)
        used = next(
            (text for call in pair_calls(evidence.transcript.events) if (text := self._use(call))), ""
        )
        sentence = used or f"The skill {self.skill} was not used"
        if bool(used) is self.should_trigger:
            return EvaluatorResult(1.0, hits=(sentence,))
        return EvaluatorResult(0.0, misses=(sentence,))

    def _use(self, call: Call) -> str:
        """Return how a call used the skill; empty if it didn't."""
        name, arguments = (call.event.name or "").lower(), call_arguments(call.event)
        arguments = arguments if isinstance(arguments, dict) else {}
        folder = f"skills/{self.skill}/"
        if name == "skill":
            return (
                f"The tool Skill got {arguments.get('skill')}"
                if self.skill in str(arguments.get("skill", ""))
                else ""
            )
        path = str(arguments.get("file_path") or arguments.get("path") or "")
        if name == "read" and folder in path:
            return f"Read {path}"
        output = call.event.output if call.event.output is not None else call.result and call.result.output
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        return f"The output of {call.event.name} names {folder}" if folder in text else ""


def _without_trace(*, negated: bool) -> EvaluatorResult:
    """Return that nothing is known: score 0, also for a negated check."""
    return EvaluatorResult(
        float(negated), misses=() if negated else (NO_TRACE,), hits=(NO_TRACE,) if negated else ()
    )


def _pass_or_fail(counts: Mapping[str, int], limits: ToolUsed | StepCount) -> EvaluatorResult:
    bounds = f"at least {limits.minimum}" + (
        f", at most {limits.maximum}" if limits.maximum is not None else ""
    )
    hits: list[str] = []
    misses: list[str] = []
    for what, count in counts.items():
        met = limits.minimum <= count and (limits.maximum is None or count <= limits.maximum)
        (hits if met else misses).append(f"{count} {what} ({bounds})")
    return EvaluatorResult(float(not misses), tuple(hits), tuple(misses))


def _step_texts(event: Event, step: str) -> tuple[str, ...]:
    """Return what a pattern may match of a step of this kind; nothing for other events."""
    if event.type == "tool_call":
        return _call_texts(event, step)
    if event.type not in TYPES or (event.type == "message" and event.role == "user"):
        return ()
    return (event.text or "", event.type) if step in ("any", event.type) else ()


def _call_texts(event: Event, step: str) -> tuple[str, ...]:
    name, is_command_tool = event.name or "", (event.name or "").lower() in _COMMAND_TOOLS
    command = event.command or (shell_command("shell", event.input) if is_command_tool else None)
    if step == "tool":
        return () if is_command_tool and command else (name,)
    if command:
        return (command, *command.split(maxsplit=1)[:1], name) if step in ("command", "any") else ()
    return (name,) if step == "any" else ()


def _includes(actual: Json, wanted: Json) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(actual, Mapping) and all(
            key in actual and _includes(actual[key], item) for key, item in wanted.items()
        )
    return are_equal(wanted, actual)


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"

"""Read AgentV's deterministic assertions, with a line for every problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from evalhub.lib.limits import LONGEST_NAME
from evaluators.grading.assertions.answer_checks import AnswerJson, AnswerPattern, AnswerText
from evaluators.grading.assertions.expected_messages import ExpectedMessages
from evaluators.grading.assertions.field_accuracy import FieldAccuracy, FieldCheck
from evaluators.grading.assertions.resource_limits import CostLimit, ExecutionLimits, LatencyLimit, TokenLimit
from evaluators.grading.assertions.tool_checks import SkillTrigger, StepCount, ToolArguments, ToolUsed
from evaluators.grading.assertions.tool_trajectory import ExpectedTool, ToolTrajectory
from evaluators.grading.scores import BaseEvaluator
from evaluators.model import Json
from scenarios.formats.agentv import assertion_models, eval_models
from scenarios.formats.agentv.eval_file_context import EvalFileContext
from scenarios.formats.positions import Location
from scenarios.formats.problems import Problem
from scenarios.formats.validation import validate

M = TypeVar("M", bound=BaseModel)
E = TypeVar("E", bound=BaseEvaluator)
Item = dict[str, Json]
Reader = Callable[[Item, Location], BaseEvaluator | None]

TEXT_KINDS = ("contains", "icontains", "starts-with", "ends-with", "equals")
TEXTS_KINDS = ("contains-any", "contains-all", "icontains-any", "icontains-all")


@dataclass
class AssertionReader:
    """Reads single assertions and collects their problems."""

    context: EvalFileContext
    problems: list[Problem] = field(default_factory=list)

    @property
    def assertions(self) -> Mapping[str, Reader]:
        """What reads each kind."""
        return {
            **dict.fromkeys(TEXT_KINDS, self._text),
            **dict.fromkeys(TEXTS_KINDS, self._texts),
            "regex": self._regex,
            "is-json": self._json,
            "json-schema": self._json,
            "field-accuracy": self._field_accuracy,
            "latency": self._latency,
            "cost": self._cost,
            "token-usage": self._token_usage,
            "execution-metrics": self._execution_metrics,
            "tool-trajectory": self._tool_trajectory,
            "expected-messages": self._expected_messages,
            "skill-trigger": self._skill_trigger,
            "skill-used": self._read_skill_used,
            "trajectory:tool-used": self._read_tool_used,
            "trajectory:tool-sequence": self._tool_sequence,
            "trajectory:tool-args-match": self._tool_arguments,
            "trajectory:step-count": self._step_count,
        }

    def valid(self, model: type[M], item: Mapping[str, Json], at: Location, **spelled: str) -> M | None:
        """Return the model of an item, None if it is wrong; its problems are collected."""
        instance, problems = validate(model, dict(item), self.context.document, at, spelled=spelled)
        self.problems += problems
        return instance

    def add_problem(self, at: Location, what: str, fix: str, id: str, *, lint: bool = False) -> None:
        self.problems.append(self.context.document.problem(at, what, fix=fix, id=id, lint=lint))

    def common(self, evaluator: eval_models.EvaluatorFile, *, derived: str = "") -> dict[str, Any]:
        """Return the fields of every evaluator; `derived` is the name that later versions give one without."""
        name = evaluator.name or (derived[:LONGEST_NAME] if self.context.version.is_later else "")
        least = evaluator.min_score
        if not isinstance(evaluator.required, bool):
            least = least or evaluator.required
        settings = {"negate": evaluator.negate, "required": bool(evaluator.required), "min_score": least}
        return {
            "name": name,
            "weight": evaluator.weight,
            **{key: value for key, value in settings.items() if value},
        }

    def build(self, kind: type[E], at: Location, **fields: Any) -> E | None:
        """Return an evaluator, None with a problem if its values don't fit together."""
        try:
            return kind.model_validate(fields)
        except ValidationError as error:
            first = error.errors()[0]
            reason = str(first.get("ctx", {}).get("error", first["msg"])).rstrip(".")
            place = at if kind is AnswerPattern else (*at, *first["loc"])
            self.add_problem(place, f"{reason}.", "Fix the value.", "format/wrong-value")
            return None

    def _text(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(assertion_models.TextFile, item, at)
        if assertion is None:
            return None
        common = self.common(assertion, derived=f"{assertion.type}-{assertion.value}")
        return self.build(AnswerText, at, type=assertion.type, value=(assertion.value,), **common)

    def _texts(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(assertion_models.TextsFile, item, at)
        if assertion is None:
            return None
        common = self.common(assertion, derived=f"{assertion.type}-{len(assertion.value)}")
        return self.build(AnswerText, at, type=assertion.type, value=tuple(assertion.value), **common)

    def _regex(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(assertion_models.RegexFile, item, at)
        if assertion is None:
            return None
        common = self.common(assertion, derived=f"regex-{assertion.value[:30]}")
        return self.build(
            AnswerPattern, (*at, "value"), value=assertion.value, flags=assertion.flags, **common
        )

    def _json(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(assertion_models.JsonFile, item, at)
        if assertion is None:
            return None
        if assertion.value is None and assertion.type == "json-schema":
            self.add_problem(at, "The key 'value' is missing.", "Add the schema.", "format/missing-field")
            return None
        common = self.common(assertion, derived=assertion.type)
        return self.build(AnswerJson, at, type=assertion.type, value=assertion.value, **common)

    def _field_accuracy(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(assertion_models.FieldAccuracyFile, item, at)
        if assertion is None:
            return None
        fields = tuple(
            FieldCheck(**one.model_dump(exclude={"formats"}), formats=tuple(one.formats))
            for one in assertion.fields
        )
        common = self.common(assertion, derived=assertion.type)
        return self.build(FieldAccuracy, at, fields=fields, aggregation=assertion.aggregation, **common)

    def _latency(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(assertion_models.LatencyFile, item, at)
        return (
            LatencyLimit(threshold=assertion.threshold, **self.common(assertion, derived=assertion.type))
            if assertion
            else None
        )

    def _cost(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(assertion_models.CostLimitFile, item, at)
        if assertion is None:
            return None
        budget = assertion.budget if assertion.budget is not None else assertion.threshold
        if budget is None:
            self.add_problem(
                at, "The key 'budget' is missing.", "Add it in US dollars.", "format/missing-field"
            )
            return None
        return CostLimit(budget=budget, **self.common(assertion, derived=assertion.type))

    def _token_usage(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(assertion_models.TokenUsageFile, item, at)
        return self._limits(TokenLimit, assertion, "max_", at) if assertion else None

    def _execution_metrics(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(assertion_models.ExecutionMetricsFile, item, at)
        return self._limits(ExecutionLimits, assertion, ("max_", "target_"), at) if assertion else None

    def _limits(
        self, kind: type[E], assertion: eval_models.EvaluatorFile, starts: str | tuple[str, ...], at: Location
    ) -> E | None:
        known = set(kind.model_fields)
        limits = {
            name: value
            for name, value in assertion.model_dump(exclude_defaults=True).items()
            if name in known
        }
        if not any(name.startswith(starts) for name in limits):
            names = [name for name in kind.model_fields if name.startswith(starts)]
            self.add_problem(
                at, "It sets no limit.", f"Add one of {', '.join(names)}.", "format/missing-field"
            )
            return None
        return self.build(kind, at, **{**limits, **self.common(assertion, derived=assertion.type)})

    def _tool_trajectory(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(eval_models.ToolTrajectoryFile, item, at)
        if assertion is None:
            return None
        needed = "minimums" if assertion.mode == "any_order" else "expected"
        if getattr(assertion, needed) is None:
            what = f"The mode '{assertion.mode}' needs the key '{needed}'."
            self.add_problem(at, what, f"Add '{needed}:'.", "format/missing-field")
            return None
        later = self.context.version.is_later
        return ToolTrajectory(
            **self.common(assertion, derived="tool-trajectory"),
            mode=assertion.mode,
            minimums=assertion.minimums or {},
            expected=tuple(ExpectedTool(**step.model_dump()) for step in assertion.expected or ()),
            args_match=assertion.args_match or ("exact" if later else "superset"),
            shares=later,
        )

    def _expected_messages(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(eval_models.ExpectedMessagesFile, item, at)
        return ExpectedMessages(**self.common(assertion)) if assertion else None

    def _skill_trigger(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(assertion_models.SkillTriggerFile, item, at)
        if assertion is None:
            return None
        common = self.common(assertion, derived=f"skill-trigger-{assertion.skill}")
        return SkillTrigger(skill=assertion.skill, should_trigger=assertion.should_trigger, **common)

    def _read_skill_used(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(assertion_models.SkillUsedFile, item, at)
        if assertion is None:
            return None
        return SkillTrigger(
            skill=assertion.value, **self.common(assertion, derived=f"skill-used-{assertion.value}")
        )

    def value(self, model: type[M], item: Item, at: Location) -> tuple[eval_models.EvaluatorFile, M] | None:
        """Return an assertion and the model of its `value`."""
        assertion = self.valid(assertion_models.ValueFile, item, at)
        if assertion is None:
            return None
        value = assertion.value if isinstance(assertion.value, dict) else {"": assertion.value}
        wanted = self.valid(model, value, (*at, "value"))
        return (assertion, wanted) if wanted else None

    def _read_tool_used(self, item: Item, at: Location) -> BaseEvaluator | None:
        value = item.get("value")
        if isinstance(value, str | list):
            texts = self.valid(assertion_models.TextsFile, item, at)
            if texts is None:
                return None
            common = self.common(texts, derived=f"{texts.type}-{texts.value[0]}")
            # Negated, no tool may be called; the opposite of "all were called" would allow all but one.
            limits = {"minimum": 0, "maximum": 0} if common.pop("negate", False) else {}
            return ToolUsed(tools=tuple(texts.value), **limits, **common)
        read = self.value(assertion_models.ToolCountFile, item, at)
        if read is None:
            return None
        assertion, count = read
        tool = self._find_tool(count, at)
        if tool is None:
            return None
        # AgentV's is 1 with `max: 0`, too, which no trial can pass.
        least = count.min if count.min is not None else (0 if count.max == 0 else 1)
        common = self.common(assertion, derived=f"{assertion.type}-{tool}")
        return ToolUsed(tools=(tool,), minimum=least, maximum=count.max, **common)

    def _find_tool(
        self, wanted: assertion_models.ToolCountFile | assertion_models.ToolArgumentsFile, at: Location
    ) -> str | None:
        """Return the name or pattern of a tool; None with a problem if there is neither."""
        tool = wanted.pattern or wanted.name
        if tool is None:
            what = "The key 'name' is missing."
            self.add_problem((*at, "value"), what, "Add the tool's name.", "format/missing-field")
        return tool

    def _tool_sequence(self, item: Item, at: Location) -> BaseEvaluator | None:
        if isinstance(steps := item.get("value"), list):
            item = {**item, "value": {"steps": steps}}
        read = self.value(assertion_models.ToolSequenceFile, item, at)
        if read is None:
            return None
        assertion, sequence = read
        expected = tuple(ExpectedTool(tool=step) for step in sequence.steps)
        common = self.common(assertion, derived=assertion.type)
        return ToolTrajectory(mode=sequence.mode, expected=expected, patterns=True, **common)

    def _tool_arguments(self, item: Item, at: Location) -> BaseEvaluator | None:
        read = self.value(assertion_models.ToolArgumentsFile, item, at)
        if read is None:
            return None
        assertion, wanted = read
        tool = self._find_tool(wanted, at)
        if tool is None:
            return None
        return ToolArguments(
            tool=tool,
            args=wanted.args,
            mode=wanted.mode,
            ignore=tuple(wanted.ignore),
            **self.common(assertion, derived=f"{assertion.type}-{tool}"),
        )

    def _step_count(self, item: Item, at: Location) -> BaseEvaluator | None:
        read = self.value(assertion_models.StepCountFile, item, at)
        if read is None:
            return None
        assertion, count = read
        return StepCount(
            step=count.type or "any",
            pattern=count.pattern or count.name or "",
            minimum=count.min,
            maximum=count.max,
            **self.common(assertion, derived=assertion.type),
        )

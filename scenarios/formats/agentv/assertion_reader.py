"""Read AgentV's deterministic assertions, with a line for every problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from evaluators.grading.assertions.answer_checks import AnswerText
from evaluators.grading.assertions.tool_checks import SkillTrigger, StepCount, ToolArguments, ToolUsed
from evaluators.grading.assertions.tool_trajectory import ExpectedTool, ToolTrajectory
from evaluators.grading.judges.checklist_judge import RubricItem
from evaluators.grading.scores import EVALUATORS, BaseEvaluator
from evaluators.model import Json
from scenarios.formats.agentv import eval_models
from scenarios.formats.agentv.file_versions import EvalFileContext
from scenarios.formats.parsed import Location, Problem, validate

M = TypeVar("M", bound=BaseModel)
E = TypeVar("E", bound=BaseEvaluator)
Item = dict[str, Json]
Reader = Callable[[Item, Location], BaseEvaluator | None]

TEXT_KINDS = ("contains", "icontains", "starts-with", "ends-with", "equals")
TEXTS_KINDS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
STORED_TYPES = {"tool-trajectory": "tool_trajectory", "expected-messages": "expected_messages"}
"""The types of kinds that aren't their names here."""
SPELLINGS = {
    "name": ("name", "metric"),
    "model": ("model", "target", "provider"),
    "script": ("script", "command"),
    "args_match": ("args_match", "argsMatch"),
    "max_duration_ms": ("max_duration_ms", "maxDurationMs"),
    "description": ("description", "outcome", "criteria", "expected_outcome"),
}
"""The names of fields in all versions; the first that is written counts."""
LIMITS = ("max_", "target_")
"""How names of limits begin; a kind needs at least one."""


@dataclass
class AssertionReader:
    """Reads single assertions and collects their problems."""

    context: EvalFileContext
    problems: list[Problem] = field(default_factory=list)

    @property
    def assertions(self) -> Mapping[str, Reader]:
        """What reads each kind."""
        return {
            **dict.fromkeys((*TEXT_KINDS, *TEXTS_KINDS), self._texts),
            "regex": self._regex,
            "is-json": self.evaluator,
            "json-schema": self._json_schema,
            "field-accuracy": self.evaluator,
            "latency": self.evaluator,
            "cost": self._cost,
            "token-usage": self._limits,
            "execution-metrics": self._limits,
            "tool-trajectory": self._tool_trajectory,
            "expected-messages": self.evaluator,
            "skill-trigger": self.evaluator,
            "skill-used": self._read_skill_used,
            "trajectory:tool-used": self._read_tool_used,
            "trajectory:tool-sequence": self._tool_sequence,
            "trajectory:tool-args-match": self._tool_arguments,
            "trajectory:step-count": self._step_count,
        }

    def valid(self, model: type[M], item: Mapping[str, Json], at: Location, **spelled: str) -> M | None:
        """Return the model of an item, None if it is wrong; its problems are collected."""
        fields = dict(item)
        if issubclass(model, BaseEvaluator | RubricItem):
            fields = _with_field_names(model, fields, spelled)
        required = fields.get("required")
        if issubclass(model, BaseEvaluator) and type(required) in (int, float):
            fields["required"] = True
            if "min_score" not in fields:
                fields["min_score"], spelled["min_score"] = required, "required"
        instance, problems = validate(model, fields, self.context.document, at, spelled=spelled)
        self.problems += problems
        return instance

    def add_problem(self, at: Location, what: str, fix: str, id: str, *, lint: bool = False) -> None:
        self.problems.append(self.context.document.problem(at, what, fix=fix, id=id, lint=lint))

    def evaluator(self, item: Item, at: Location, **spelled: str) -> BaseEvaluator | None:
        """Return the evaluator of an item whose file has the fields of its class."""
        stored = str(STORED_TYPES.get(item["type"], item["type"]))
        return self.valid(EVALUATORS[stored], {**item, "type": stored}, at, **spelled)

    def _texts(self, item: Item, at: Location) -> BaseEvaluator | None:
        several = item["type"] in TEXTS_KINDS
        model = eval_models.TextsFile if several else eval_models.TextFile
        assertion = self.valid(model, item, at)
        if assertion is None:
            return None
        values = assertion.value if several else [assertion.value]
        return AnswerText.model_validate({**dict(assertion), "value": values})

    def _regex(self, item: Item, at: Location) -> BaseEvaluator | None:
        # The pattern is checked with its flags.
        spelled = {} if "flags" in item else {"flags": "value"}
        return self.evaluator({"flags": "", **item}, at, **spelled)

    def _json_schema(self, item: Item, at: Location) -> BaseEvaluator | None:
        if "value" in item:
            return self.evaluator(item, at)
        self.add_problem(at, "The key 'value' is missing.", "Add the schema.", "format/missing-field")
        return None

    def _cost(self, item: Item, at: Location) -> BaseEvaluator | None:
        if "threshold" not in item or "budget" in item:
            return self.evaluator({key: each for key, each in item.items() if key != "threshold"}, at)
        return self.evaluator({"budget": item.pop("threshold"), **item}, at, budget="threshold")

    def _limits(self, item: Item, at: Location) -> BaseEvaluator | None:
        names = [name for name in EVALUATORS[item["type"]].model_fields if name.startswith(LIMITS)]
        if item.keys() & names:
            return self.evaluator(item, at)
        self.add_problem(at, "It sets no limit.", f"Add one of {', '.join(names)}.", "format/missing-field")
        return None

    def _tool_trajectory(self, item: Item, at: Location) -> BaseEvaluator | None:
        later, spelled = self.context.version.is_later, dict[str, str]()
        fields = _with_field_names(ToolTrajectory, item, spelled)
        if later:
            fields.setdefault("args_match", "exact")
        if isinstance(steps := item.get("expected"), list):
            fields["expected"] = [
                _with_field_names(ExpectedTool, step, spelled) if isinstance(step, dict) else step
                for step in steps
            ]
        trajectory = self.evaluator(fields, at, **spelled)
        if not isinstance(trajectory, ToolTrajectory):
            return None
        needed = "minimums" if trajectory.mode == "any_order" else "expected"
        if needed not in item:
            what = f"The mode '{trajectory.mode}' needs the key '{needed}'."
            self.add_problem(at, what, f"Add '{needed}:'.", "format/missing-field")
            return None
        return trajectory.model_copy(update={"shares": later})

    def _read_skill_used(self, item: Item, at: Location) -> BaseEvaluator | None:
        assertion = self.valid(eval_models.TextFile, item, at)
        return self.of(SkillTrigger, assertion, skill=assertion.value) if assertion else None

    def of(self, kind: type[E], assertion: eval_models.ValueFile, **fields: Any) -> E:
        """Return the evaluator of an assertion with a value: its common fields, and these."""
        common = {name: getattr(assertion, name) for name in BaseEvaluator.model_fields if name != "type"}
        return kind.model_validate({**common, **fields})

    def value(self, model: type[M], item: Item, at: Location) -> tuple[eval_models.ValueFile, M] | None:
        """Return an assertion and the model of its `value`."""
        assertion = self.valid(eval_models.ValueFile, item, at)
        if assertion is None:
            return None
        value = assertion.value if isinstance(assertion.value, dict) else {"": assertion.value}
        wanted = self.valid(model, value, (*at, "value"))
        return (assertion, wanted) if wanted else None

    def _read_tool_used(self, item: Item, at: Location) -> BaseEvaluator | None:
        if isinstance(item.get("value"), str | list):
            texts = self.valid(eval_models.TextsFile, item, at)
            if texts is None:
                return None
            # Negated, no tool may be called; the opposite of "all were called" would allow all but one.
            limits = {"minimum": 0, "maximum": 0, "negate": False} if texts.negate else {}
            return self.of(ToolUsed, texts, tools=texts.value, **limits)
        read = self.value(eval_models.ToolCountFile, item, at)
        if read is None:
            return None
        assertion, count = read
        tool = self._find_tool(count, at)
        if tool is None:
            return None
        # AgentV's is 1 with `max: 0`, too, which no trial can pass.
        least = count.min if count.min is not None else (0 if count.max == 0 else 1)
        return self.of(ToolUsed, assertion, tools=(tool,), minimum=least, maximum=count.max)

    def _find_tool(
        self, wanted: eval_models.ToolCountFile | eval_models.ToolArgumentsFile, at: Location
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
        read = self.value(eval_models.ToolSequenceFile, item, at)
        if read is None:
            return None
        assertion, sequence = read
        expected = tuple(ExpectedTool(tool=step) for step in sequence.steps)
        return self.of(ToolTrajectory, assertion, mode=sequence.mode, expected=expected, patterns=True)

    def _tool_arguments(self, item: Item, at: Location) -> BaseEvaluator | None:
        read = self.value(eval_models.ToolArgumentsFile, item, at)
        if read is None:
            return None
        assertion, wanted = read
        tool = self._find_tool(wanted, at)
        if tool is None:
            return None
        fields = wanted.model_dump(exclude={"name", "pattern"})
        return self.of(ToolArguments, assertion, tool=tool, **fields)

    def _step_count(self, item: Item, at: Location) -> BaseEvaluator | None:
        read = self.value(eval_models.StepCountFile, item, at)
        if read is None:
            return None
        assertion, count = read
        step, pattern = count.type or "any", count.pattern or count.name or ""
        return self.of(StepCount, assertion, step=step, pattern=pattern, minimum=count.min, maximum=count.max)


def _with_field_names(model: type[BaseModel], item: Item, spelled: dict[str, str]) -> Item:
    """Return an item with the names of a model's fields, and add to `spelled` how the file spells them."""
    fields = dict(item)
    for name, names in SPELLINGS.items():
        written = next((each for each in names if each in fields), name)
        if name in model.model_fields and written != name:
            fields[name], spelled[name] = fields.pop(written), written
    return fields

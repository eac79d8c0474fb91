"""Read the evaluators of a case, with a line for every problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from evaluators.grading.assertions.expected_messages import ExpectedMessages
from evaluators.grading.assertions.tool_trajectory import ExpectedTool, ToolTrajectory
from evaluators.grading.judges.checklist_judge import ChecklistJudge, RubricItem
from evaluators.grading.judges.code_judge import CodeJudge
from evaluators.grading.judges.llm_judge import LlmJudge
from evaluators.grading.scores import BaseEvaluator
from evaluators.grading.scores.composite_evaluator import (
    CodeAggregator,
    CompositeEvaluator,
    LlmAggregator,
    WeightedAverage,
)
from evaluators.grading.scores.weighted_score import NAME as RESERVED
from evaluators.model import Json
from scenarios.formats.agentv import eval_models
from scenarios.formats.agentv.eval_file_context import EvalFileContext
from scenarios.formats.agentv.judge_files import read_cwd, read_prompt, script_lints
from scenarios.formats.positions import Location
from scenarios.formats.problems import Problem
from scenarios.formats.validation import did_you_mean, kind, validate

M = TypeVar("M", bound=BaseModel)

ALIASES = {"code": "code_judge", "expected_tool_calls": "expected_messages"}


@dataclass
class EvaluatorReader:
    """Reads evaluators and collects their problems."""

    context: EvalFileContext
    problems: list[Problem] = field(default_factory=list)

    def read(self, items: Sequence[Json], at: Location) -> tuple[BaseEvaluator, ...]:
        """Return the valid evaluators in order, each with a unique name."""
        found = [(self._read_one(item, (*at, index)), index) for index, item in enumerate(items)]
        right = [(one, index) for one, index in found if one is not None]
        named = with_unique_names([one for one, _ in right])
        for (before, index), after in zip(right, named, strict=True):
            if before.label != after.label:
                self._add_rename_lint(before.label, after.label, (*at, index, "name"))
        return named

    def rubric(self, items: Sequence[Json], at: Location, **given: Any) -> ChecklistJudge | None:
        """Return a rubric evaluator for a list of statements, None without a valid one."""
        rubrics = [self._statement(item, index, (*at, index)) for index, item in enumerate(items)]
        right = [item for item in rubrics if item is not None]
        self._check_ids(right, at)
        return ChecklistJudge(rubrics=tuple(right), **given) if right else None

    def _read_one(self, item: Json, at: Location) -> BaseEvaluator | None:
        if isinstance(item, str):
            item = {"type": item}
        if not isinstance(item, dict):
            what = f"An evaluator must be a mapping with a 'type', not {kind(item)}."
            self._add_problem(at, what, "Write '- type:' with its keys below.", "format/wrong-type")
            return None
        name = item.get("type")
        name = ALIASES.get(name, name) if isinstance(name, str) else name
        if "type" not in item:
            self._add_problem(at, "The evaluator has no 'type'.", "Add 'type:'.", "format/missing-field")
        elif not isinstance(name, str) or name not in self._readers:
            fix = did_you_mean(str(name), self._readers) or f"Use one of {', '.join(self._readers)}."
            what = f"Unknown evaluator '{name}'."
            self._add_problem((*at, "type"), what, fix, "format/unknown-evaluator")
        else:
            given = {key: value for key, value in item.items() if value is not None}
            return self._readers[name]({**given, "type": name}, at)
        return None

    @property
    def _readers(self) -> dict[str, Callable[[dict[str, Json], Location], BaseEvaluator | None]]:
        """Return what reads each kind."""
        return {
            "llm_judge": self._llm_judge,
            "rubric": self._rubric_judge,
            "code_judge": self._code_judge,
            "tool_trajectory": self._tool_trajectory,
            "expected_messages": self._expected_messages,
            "composite": self._composite,
        }

    def _valid(self, model: type[M], item: Mapping[str, Json], at: Location) -> M | None:
        found, problems = validate(model, dict(item), self.context.document, at)
        self.problems += problems
        return found

    def _add_problem(self, at: Location, what: str, fix: str, id: str, *, lint: bool = False) -> None:
        self.problems.append(self.context.document.problem(at, what, fix=fix, id=id, lint=lint))

    def _add_rename_lint(self, before: str, after: str, at: Location) -> None:
        what = f"The name '{before}' is already used, so this evaluator is named '{after}'."
        self._add_problem(at, what, "Give it a unique 'name'.", "format/duplicate-evaluator", lint=True)

    def _llm_judge(self, item: dict[str, Json], at: Location) -> BaseEvaluator | None:
        found = self._valid(eval_models.LlmJudgeFile, item, at)
        if found is None:
            return None
        common = _common(found)
        if found.rubrics:
            more = {"model": found.model or "", "include_trace": found.include_trace}
            return self.rubric(found.rubrics, (*at, "rubrics"), **common, **more)
        text, path, problems = read_prompt(found.prompt, self.context, (*at, "prompt"))
        self.problems += problems
        return LlmJudge(
            **common,
            prompt=text,
            prompt_file=path,
            model=found.model or "",
            include_trace=found.include_trace,
        )

    def _rubric_judge(self, item: dict[str, Json], at: Location) -> BaseEvaluator | None:
        found = self._valid(eval_models.RubricJudgeFile, item, at)
        if found is None:
            return None
        more = {"model": found.model or "", "include_trace": found.include_trace}
        return self.rubric(found.rubrics, (*at, "rubrics"), **_common(found), **more)

    def _code_judge(self, item: dict[str, Json], at: Location) -> BaseEvaluator | None:
        found = self._valid(eval_models.CodeJudgeFile, item, at)
        if found is None:
            return None
        cwd = self._cwd(found.cwd, found.script, at, "script")
        return CodeJudge(
            **_common(found),
            script=found.script,
            cwd=cwd,
            timeout_seconds=found.timeout_seconds,
            network=found.network,
        )

    def _tool_trajectory(self, item: dict[str, Json], at: Location) -> BaseEvaluator | None:
        found = self._valid(eval_models.ToolTrajectoryFile, item, at)
        if found is None:
            return None
        needed = "minimums" if found.mode == "any_order" else "expected"
        if getattr(found, needed) is None:
            what = f"The mode '{found.mode}' needs the key '{needed}'."
            self._add_problem(at, what, f"Add '{needed}:'.", "format/missing-field")
            return None
        return ToolTrajectory(
            **_common(found),
            mode=found.mode,
            minimums=found.minimums or {},
            expected=tuple(ExpectedTool(**step.model_dump()) for step in found.expected or ()),
            args_match=found.args_match,
        )

    def _expected_messages(self, item: dict[str, Json], at: Location) -> BaseEvaluator | None:
        found = self._valid(eval_models.ExpectedMessagesFile, item, at)
        return ExpectedMessages(**_common(found)) if found else None

    def _composite(self, item: dict[str, Json], at: Location) -> BaseEvaluator | None:
        found = self._valid(eval_models.CompositeFile, item, at)
        if found is None:
            return None
        members = self.read(found.evaluators, (*at, "evaluators"))
        aggregator = self._aggregator(found.aggregator, (*at, "aggregator"))
        if not members or aggregator is None:
            return None
        return CompositeEvaluator.model_validate(
            {**_common(found), "evaluators": members, "aggregator": aggregator}
        )

    def _aggregator(
        self, item: dict[str, Json] | None, at: Location
    ) -> WeightedAverage | CodeAggregator | LlmAggregator | None:
        item = item or {"type": "weighted_average"}
        match item.get("type"):
            case "weighted_average":
                average = self._valid(eval_models.WeightedAverageFile, item, at)
                return WeightedAverage(weights=average.weights) if average else None
            case "code_judge":
                return self._code_aggregator(item, at)
            case "llm_judge":
                return self._llm_aggregator(item, at)
        what = f"Unknown aggregator '{item.get('type')}'."
        fix = "Use one of weighted_average, code_judge, llm_judge."
        self._add_problem((*at, "type"), what, fix, "format/unknown-aggregator")
        return None

    def _code_aggregator(self, item: dict[str, Json], at: Location) -> CodeAggregator | None:
        found = self._valid(eval_models.CodeAggregatorFile, item, at)
        if found is None:
            return None
        cwd = self._cwd(found.cwd, found.path, at, "path")
        return CodeAggregator(
            path=found.path, cwd=cwd, timeout_seconds=found.timeout_seconds, network=found.network
        )

    def _llm_aggregator(self, item: dict[str, Json], at: Location) -> LlmAggregator | None:
        found = self._valid(eval_models.LlmAggregatorFile, item, at)
        if found is None:
            return None
        text, path, problems = read_prompt(found.prompt, self.context, (*at, "prompt"), needs_answer=False)
        self.problems += problems
        return LlmAggregator(prompt=text, prompt_file=path, model=found.model or "")

    def _cwd(self, value: str | None, script: str, at: Location, key: str) -> str:
        cwd, problems = read_cwd(value, self.context, (*at, "cwd"))
        if not problems:
            problems = script_lints(script, cwd, self.context, (*at, key))
        self.problems += problems
        return cwd

    def _statement(self, item: Json, index: int, at: Location) -> RubricItem | None:
        if isinstance(item, str) and item.strip():
            return RubricItem(id=f"rubric-{index + 1}", description=item.strip())
        if not isinstance(item, dict):
            what = f"A rubric must be text or a mapping, not {kind(item)}."
            self._add_problem(
                at, what, "Write the statement, or 'id:' and 'description:'.", "format/wrong-type"
            )
            return None
        given = {key: value for key, value in item.items() if value is not None}
        found = self._valid(eval_models.RubricItemFile, given, at)
        return RubricItem(**found.model_dump()) if found else None

    def _check_ids(self, items: Sequence[RubricItem], at: Location) -> None:
        ids = [item.id for item in items]
        for repeated in sorted({id for id in ids if ids.count(id) > 1}):
            what = f"Duplicate rubric '{repeated}'."
            self._add_problem(at, what, "Give each rubric a unique id.", "format/duplicate-criterion")
        if items and not any(item.weight for item in items):
            fix = "Give at least one rubric a weight."
            self._add_problem(at, "All rubrics have weight 0.", fix, "format/no-weight")


def _common(found: eval_models.EvaluatorFile) -> dict[str, Any]:
    return {"name": found.name or "", "weight": found.weight}


def with_unique_names(evaluators: Sequence[BaseEvaluator]) -> tuple[BaseEvaluator, ...]:
    """Return the evaluators with unique names, different from the aggregate's."""
    taken = {RESERVED}
    found = []
    for evaluator in evaluators:
        name = evaluator.label
        number = 2
        while name in taken:
            name = f"{evaluator.label} {number}"
            number += 1
        taken.add(name)
        same = name == evaluator.label
        found.append(evaluator if same else evaluator.model_copy(update={"name": name}))
    return tuple(found)

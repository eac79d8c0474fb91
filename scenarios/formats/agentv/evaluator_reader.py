"""Read the evaluators of a case, with a line for every problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluators.grading.judges.checklist_judge import ChecklistJudge, RubricItem
from evaluators.grading.judges.code_judge import CodeJudge
from evaluators.grading.judges.llm_judge import LlmJudge
from evaluators.grading.scores import BaseEvaluator
from evaluators.grading.scores.composite_evaluator import (
    CodeAggregator,
    CompositeEvaluator,
    LlmAggregator,
    PassedShare,
    WeightedAverage,
)
from evaluators.grading.scores.weighted_score import NAME as RESERVED
from evaluators.model import Json
from scenarios.formats.agentv import assertion_models, eval_models
from scenarios.formats.agentv.assertion_reader import TEXT_KINDS, TEXTS_KINDS, AssertionReader, Item, Reader
from scenarios.formats.agentv.file_versions import OF_LIST, unify_keys
from scenarios.formats.agentv.included_files import read_include
from scenarios.formats.agentv.judge_files import read_cwd, read_prompt, script_lints, split_settings
from scenarios.formats.agentv.prompt_values import find_unfilled
from scenarios.formats.positions import Location
from scenarios.formats.validation import did_you_mean, kind

INCLUDE_LEVELS = 3
ALIASES = {
    "code": "code_judge",
    "code-judge": "code_judge",
    "code-grader": "code_judge",
    "script": "code_judge",
    "llm-judge": "llm_judge",
    "llm-grader": "llm_judge",
    "rubrics": "rubric",
    "llm-rubric": "rubric",
    "expected-tool-calls": "expected-messages",
}
"""Names of kinds in other versions; `_` and `-` are the same."""
BY_CRITERIA = ("llm-rubric", "llm_rubric")
"""Names of `rubric` that judge by the case's criteria where they have no statements."""
MODELS: Mapping[str, type[eval_models.EvaluatorFile]] = {
    "llm_judge": eval_models.LlmJudgeFile,
    "rubric": eval_models.RubricJudgeFile,
    "code_judge": eval_models.CodeJudgeFile,
    "composite": eval_models.CompositeFile,
    "assert-set": assertion_models.AssertSetFile,
    **dict.fromkeys(TEXT_KINDS, assertion_models.TextFile),
    **dict.fromkeys(TEXTS_KINDS, assertion_models.TextsFile),
    "regex": assertion_models.RegexFile,
    "is-json": assertion_models.JsonFile,
    "json-schema": assertion_models.JsonFile,
    "field-accuracy": assertion_models.FieldAccuracyFile,
    "latency": assertion_models.LatencyFile,
    "cost": assertion_models.CostLimitFile,
    "token-usage": assertion_models.TokenUsageFile,
    "execution-metrics": assertion_models.ExecutionMetricsFile,
    "tool-trajectory": eval_models.ToolTrajectoryFile,
    "expected-messages": eval_models.ExpectedMessagesFile,
    "skill-trigger": assertion_models.SkillTriggerFile,
    "skill-used": assertion_models.SkillUsedFile,
    **dict.fromkeys(assertion_models.VALUE_MODELS, assertion_models.ValueFile),
}
"""The model of each kind's entry."""
_IN_KEBAB = {"tool_trajectory": "tool-trajectory", "expected_messages": "expected-messages"}


@dataclass
class EvaluatorReader(AssertionReader):
    """Reads lists of evaluators, and those that ask a model, run a script or combine others."""

    included: tuple[str, ...] = ()
    """The files that include each other down to this list."""
    rubrics: Sequence[Json] = ()
    """The case's own statements, which a judge's prompt can name."""

    def read(
        self, items: Sequence[Json], at: Location, *, texts_are_statements: bool = False
    ) -> tuple[BaseEvaluator, ...]:
        """Return the valid evaluators in order, each with a unique name.

        A text is the type of an evaluator, or with `texts_are_statements` what a model checks.
        """
        evaluators = list(self._read_each(items, at, texts_are_statements))
        named = with_unique_names([one for one, _ in evaluators])
        for (before, index), after in zip(evaluators, named, strict=True):
            if before.label != after.label and not self.context.version.is_later:
                self._add_rename_lint(before.label, after.label, (*at, index, "name"))
        return named

    def _read_each(
        self, items: Sequence[Json], at: Location, texts_are_statements: bool
    ) -> Iterator[tuple[BaseEvaluator, int]]:
        statements = [item for item in items if isinstance(item, str)] if texts_are_statements else []
        for index, item in enumerate(items):
            if statements and isinstance(item, str):
                if item is statements[0] and (judge := self._of_statements(statements, at)):
                    yield judge, index
                    statements = []
            elif texts_are_statements and isinstance(item, str):
                continue
            elif isinstance(item, dict) and set(item) == {"include"}:
                yield from ((one, index) for one in self._include(item["include"], (*at, index)))
            elif one := self._read_one(item, (*at, index)):
                yield one, index

    def _of_statements(self, statements: Sequence[str], at: Location) -> BaseEvaluator | None:
        """Return one judge of all plain texts, with a weight of 1 for each."""
        return self.rubric(statements, at, name="rubrics", weight=float(len(statements)))

    def _include(self, name: Json, at: Location) -> tuple[BaseEvaluator, ...]:
        """Return the evaluators of a file with assertions, or a template of `.agentv/templates`."""
        document = read_include(name, self.context, at, self.problems)
        if document is None:
            return ()
        if document.file in self.included or len(self.included) >= INCLUDE_LEVELS:
            what = f"'{name}' includes itself, or the files are nested too deep."
            fix = f"Nest files at most {INCLUDE_LEVELS} deep."
            self.add_problem(at, what, fix, "format/nested-include")
            return ()
        value = document.value if isinstance(document.value, dict) else {}
        key = next((each for each in ("assertions", "assert") if isinstance(value.get(each), list)), "")
        inner = EvaluatorReader(
            replace(self.context, document=document),
            self.problems,
            (*self.included, document.file),
            self.rubrics,
        )
        if not key:
            inner.add_problem((), "The file has no list 'assertions'.", "Add it.", "format/missing-field")
            return ()
        return inner.read(value[key], (key,), texts_are_statements=True)

    def rubric(self, items: Sequence[Json], at: Location, **fields: Any) -> ChecklistJudge | None:
        """Return a rubric evaluator for a list of statements, None without a valid one."""
        rubrics = [self._statement(item, index, (*at, index)) for index, item in enumerate(items)]
        right = [item for item in rubrics if item is not None]
        self._check_ids(right, at)
        return ChecklistJudge(rubrics=tuple(right), **fields) if right else None

    def _read_one(self, item: Json, at: Location) -> BaseEvaluator | None:
        if isinstance(item, str):
            item = {"type": item}
        if not isinstance(item, dict):
            what = f"An evaluator must be a mapping with a 'type', not {kind(item)}."
            self.add_problem(at, what, "Write '- type:' with its keys below.", "format/wrong-type")
            return None
        if "type" not in item:
            self.add_problem(at, "The evaluator has no 'type'.", "Add 'type:'.", "format/missing-field")
            return None
        fields = {key: value for key, value in item.items() if value is not None}
        name = fields.get("type")
        negated = isinstance(name, str) and name.startswith("not-") and self.context.version.has_matrix
        if negated:
            fields = {**fields, "negate": not fields.get("negate", False)}
            name = str(name).removeprefix("not-")
        known = self._find_reader(name)
        if known is None:
            self._add_unknown(name, (*at, "type"))
            return None
        kind_name, reader = known
        return reader({**fields, "type": kind_name}, at)

    def _find_reader(self, name: Json) -> tuple[str, Reader] | None:
        """Return the name of a kind and its reader; None for an unknown one."""
        if not isinstance(name, str):
            return None
        kebab = name.replace("_", "-")
        type_name = ALIASES.get(kebab, kebab)
        judges = self._judges
        if type_name in judges:
            return (name if self.context.version.is_later else type_name), judges[type_name]
        return (type_name, self.assertions[type_name]) if type_name in self.assertions else None

    def _add_unknown(self, name: Json, at: Location) -> None:
        base = str(name).removeprefix("not-")
        if base != name and self._find_reader(base):
            fix = f"Write 'type: {base}' with 'negate: true'; 'not-' is of later versions."
        else:
            known = (*self._judges, *_IN_KEBAB, *self.assertions)
            fix = did_you_mean(str(name), known) or f"Use one of {', '.join(known)}."
        self.add_problem(at, f"Unknown evaluator '{name}'.", fix, "format/unknown-evaluator")

    @property
    def _judges(self) -> dict[str, Reader]:
        """Return what reads each kind that is not an assertion."""
        return {
            "llm_judge": self._llm_judge,
            "rubric": self._rubric_judge,
            "code_judge": self._code_judge,
            "composite": self._composite,
            "assert-set": self._assert_set,
            "trajectory:goal-success": self._goal_success,
        }

    def _add_rename_lint(self, before: str, after: str, at: Location) -> None:
        what = f"The name '{before}' is already used, so this evaluator is named '{after}'."
        self.add_problem(at, what, "Give it a unique 'name'.", "format/duplicate-evaluator", lint=True)

    def _llm_judge(self, item: Item, at: Location) -> BaseEvaluator | None:
        judge = self.valid(eval_models.LlmJudgeFile, item, at)
        if judge is None:
            return None
        common = self._judge_fields(judge)
        if judge.rubrics:
            self._add_unused_prompt(judge.prompt, (*at, "prompt"))
            return self.rubric(judge.rubrics, (*at, "rubrics"), **common)
        text, path, problems = read_prompt(judge.prompt, self.context, (*at, "prompt"))
        self.problems += [*problems, *find_unfilled(text, self.rubrics, self.context, (*at, "prompt"))]
        return LlmJudge(**common, prompt=text, prompt_file=path)

    def _rubric_judge(self, item: Item, at: Location) -> BaseEvaluator | None:
        key = next((key for key in ("rubrics", "criteria", "value") if key in item), "rubrics")
        if key not in item and (item["type"] in BY_CRITERIA or "prompt" in item):
            return self._llm_judge(item, at)
        self._add_unused_prompt(item.pop("prompt", None), (*at, "prompt"))
        judge = self.valid(eval_models.RubricJudgeFile, item, at)
        return self.rubric(judge.rubrics, (*at, key), **self._judge_fields(judge)) if judge else None

    def _add_unused_prompt(self, prompt: Json, at: Location) -> None:
        if prompt is not None:
            what = "This prompt is not used: evalhub asks about statements in its own words."
            fix = "Remove it, or remove the statements to judge with the prompt alone."
            self.add_problem(at, what, fix, "format/unused-prompt", lint=True)

    def _goal_success(self, item: Item, at: Location) -> BaseEvaluator | None:
        value = item.get("value")
        read = self.value(
            assertion_models.GoalFile,
            {**item, "value": {"goal": value} if isinstance(value, str) else value},
            at,
        )
        if read is None:
            return None
        assertion, wanted = read
        statement = RubricItem(id="goal", description=f"The agent reached this goal: {wanted.goal}")
        return ChecklistJudge(
            rubrics=(statement,), include_trace=True, **self.common(assertion, derived=assertion.type)
        )

    def _judge_fields(self, judge: eval_models.LlmJudgeFile | eval_models.RubricJudgeFile) -> dict[str, Any]:
        common = self.common(judge, derived=judge.type)
        if judge.threshold is not None:
            common.setdefault("min_score", judge.threshold)
        return {**common, "model": judge.model or "", "include_trace": judge.include_trace}

    def _code_judge(self, item: Item, at: Location) -> BaseEvaluator | None:
        own, settings = split_settings(eval_models.CodeJudgeFile, item)
        judge = self.valid(eval_models.CodeJudgeFile, own, at)
        if judge is None:
            return None
        cwd = self._cwd(judge.cwd, judge.script, at, "command" if "command" in item else "script")
        return CodeJudge(
            **self.common(judge, derived=judge.type),
            script=judge.script,
            cwd=cwd,
            timeout_seconds=judge.timeout_seconds,
            network=judge.network,
            exit_code_decides=self.context.version.is_later,
            config={**settings, **judge.config},
        )

    def _composite(self, item: Item, at: Location) -> BaseEvaluator | None:
        item, spelled, problems = unify_keys(item, OF_LIST, self.context.document, at)
        self.problems += problems
        composite = self.valid(eval_models.CompositeFile, item, at, **spelled)
        if composite is None:
            return None
        members = self._members(composite.evaluators, (*at, spelled.get("evaluators", "evaluators")))
        aggregator = self._aggregator(composite.aggregator, (*at, "aggregator"))
        if not members or aggregator is None:
            return None
        return CompositeEvaluator.model_validate(
            {
                **self.common(composite, derived=composite.type),
                "evaluators": members,
                "aggregator": aggregator,
            }
        )

    def _assert_set(self, item: Item, at: Location) -> BaseEvaluator | None:
        threshold = item.pop("threshold", None)
        if threshold is not None:
            item.setdefault("min_score", threshold)
        item, spelled, problems = unify_keys(item, OF_LIST, self.context.document, at)
        self.problems += problems
        assert_set = self.valid(assertion_models.AssertSetFile, item, at, min_score="threshold", **spelled)
        if assert_set is None:
            return None
        members = self._members(assert_set.evaluators, (*at, spelled.get("evaluators", "evaluators")))
        common = self.common(assert_set, derived=assert_set.type)
        return CompositeEvaluator.model_validate({**common, "evaluators": members}) if members else None

    def _members(self, items: Sequence[Json], at: Location) -> tuple[BaseEvaluator, ...]:
        return self.read(items, at, texts_are_statements=self.context.version.is_later)

    def _aggregator(
        self, item: Item | None, at: Location
    ) -> WeightedAverage | PassedShare | CodeAggregator | LlmAggregator | None:
        item = item or {"type": "weighted_average"}
        name = str(item.get("type")).replace("-", "_").replace("grader", "judge")
        match eval_models.AGGREGATOR_ALIASES.get(name, name):
            case "weighted_average":
                average = self.valid(eval_models.WeightedAverageFile, item, at)
                return WeightedAverage(weights=average.weights) if average else None
            case "threshold":
                share = self.valid(eval_models.PassedShareFile, item, at)
                return PassedShare(threshold=share.threshold) if share else None
            case "code_judge":
                return self._code_aggregator(item, at)
            case "llm_judge":
                return self._llm_aggregator(item, at)
        what = f"Unknown aggregator '{item.get('type')}'."
        fix = f"Use one of {', '.join(eval_models.AGGREGATORS)}."
        self.add_problem((*at, "type"), what, fix, "format/unknown-aggregator")
        return None

    def _code_aggregator(self, item: dict[str, Json], at: Location) -> CodeAggregator | None:
        aggregator = self.valid(eval_models.CodeAggregatorFile, item, at)
        if aggregator is None:
            return None
        cwd = self._cwd(aggregator.cwd, aggregator.path, at, "path")
        return CodeAggregator(
            path=aggregator.path,
            cwd=cwd,
            timeout_seconds=aggregator.timeout_seconds,
            network=aggregator.network,
        )

    def _llm_aggregator(self, item: dict[str, Json], at: Location) -> LlmAggregator | None:
        aggregator = self.valid(eval_models.LlmAggregatorFile, item, at)
        if aggregator is None:
            return None
        text, path, problems = read_prompt(
            aggregator.prompt, self.context, (*at, "prompt"), needs_answer=False
        )
        self.problems += problems
        return LlmAggregator(prompt=text, prompt_file=path, model=aggregator.model or "")

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
            self.add_problem(
                at, what, "Write the statement, or 'id:' and 'description:'.", "format/wrong-type"
            )
            return None
        fields = {key: value for key, value in item.items() if value is not None}
        statement = self.valid(eval_models.RubricItemFile, fields, at)
        if statement is None:
            return None
        text = (
            statement.description
            if statement.operator == "correctness"
            else f"It does not contradict: {statement.description}"
        )
        return RubricItem(
            id=statement.id or f"rubric-{index + 1}",
            description=text,
            weight=statement.weight,
            required=statement.required,
        )

    def _check_ids(self, items: Sequence[RubricItem], at: Location) -> None:
        ids = [item.id for item in items]
        for repeated in sorted({id for id in ids if ids.count(id) > 1}):
            what = f"Duplicate rubric '{repeated}'."
            self.add_problem(at, what, "Give each rubric a unique id.", "format/duplicate-criterion")
        if items and not any(item.weight for item in items):
            fix = "Give at least one rubric a weight."
            self.add_problem(at, "All rubrics have weight 0.", fix, "format/no-weight")


def with_unique_names(evaluators: Sequence[BaseEvaluator]) -> tuple[BaseEvaluator, ...]:
    """Return the evaluators with unique names, different from the aggregate's."""
    taken = {RESERVED}
    unique = []
    for evaluator in evaluators:
        name = evaluator.label
        number = 2
        while name in taken:
            name = f"{evaluator.label} {number}"
            number += 1
        taken.add(name)
        same = name == evaluator.label
        unique.append(evaluator if same else evaluator.model_copy(update={"name": name}))
    return tuple(unique)

"""Read the evaluators of a case, with a line for every problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalhub.lib.limits import LONGEST_NAME
from evaluators.grading.assertions.answer_checks import AnswerPattern, AnswerText
from evaluators.grading.assertions.expected_messages import ExpectedMessages
from evaluators.grading.assertions.tool_checks import SkillTrigger, ToolArguments, ToolUsed
from evaluators.grading.judges.checklist_judge import ChecklistJudge, RubricItem
from evaluators.grading.judges.code_judge import CodeAggregator, CodeJudge
from evaluators.grading.judges.llm_judge import LlmJudge
from evaluators.grading.scores import AGGREGATORS, EVALUATORS, BaseEvaluator
from evaluators.grading.scores.composite_evaluator import (
    CompositeEvaluator,
    LlmAggregator,
)
from evaluators.grading.scores.weighted_score import NAME as RESERVED
from evaluators.model import Json, Kind
from scenarios.formats.agentv import eval_models
from scenarios.formats.agentv.assertion_reader import (
    SPELLINGS,
    STORED_TYPES,
    TEXT_KINDS,
    TEXTS_KINDS,
    AssertionReader,
    E,
    Item,
    Reader,
)
from scenarios.formats.agentv.eval_models import AGGREGATOR_ALIASES, RubricItemFile
from scenarios.formats.agentv.file_versions import OF_LIST, unify_keys
from scenarios.formats.agentv.imported_cases import find_unfilled, read_include
from scenarios.formats.agentv.messages import read_cwd, read_prompt, script_lints
from scenarios.formats.parsed import Location, describe_kind, did_you_mean, shown_fields

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
MODELS: Mapping[str, type[BaseEvaluator]] = {
    **{name: kind for name, kind in EVALUATORS.items() if name not in STORED_TYPES.values()},
    **{name: EVALUATORS[stored] for name, stored in STORED_TYPES.items()},
    **dict.fromkeys(TEXT_KINDS, eval_models.TextFile),
    **dict.fromkeys(TEXTS_KINDS, eval_models.TextsFile),
    "skill-used": eval_models.TextFile,
    **dict.fromkeys(eval_models.VALUE_MODELS, eval_models.ValueFile),
    "assert-set": eval_models.AssertSetFile,
}
"""The model of each kind's entry."""


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
                if item is statements[0] and (
                    judge := self.rubric(statements, at, name="rubrics", weight=float(len(statements)))
                ):
                    yield judge, index
                    statements = []
            elif texts_are_statements and isinstance(item, str):
                continue
            elif isinstance(item, dict) and set(item) == {"include"}:
                yield from ((one, index) for one in self._include(item["include"], (*at, index)))
            elif one := self._read_one(item, (*at, index)):
                yield one, index

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
        statements = self._statements(items, at)
        return ChecklistJudge(rubrics=statements, **fields) if statements else None

    def _statements(self, items: Sequence[Json], at: Location) -> tuple[RubricItem, ...]:
        read = [self._statement(item, index, (*at, index)) for index, item in enumerate(items)]
        right = tuple(item for item in read if item is not None)
        self._check_ids(right, at)
        return right

    def _read_one(self, item: Json, at: Location) -> BaseEvaluator | None:
        if isinstance(item, str):
            item = {"type": item}
        if not isinstance(item, dict):
            what = f"An evaluator must be a mapping with a 'type', not {describe_kind(item)}."
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
        evaluator = reader({**fields, "type": kind_name}, at)
        if evaluator is None or evaluator.name or not self.context.version.is_later:
            return evaluator
        return evaluator.model_copy(update={"name": _derived_name(evaluator, kind_name)[:LONGEST_NAME]})

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
            known = (*self._judges, *STORED_TYPES.values(), *self.assertions)
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
        if item.get("rubrics"):
            return self._rubric_judge(item, at, takes_text=False)
        item.pop("rubrics", None)
        judge = self._judge(LlmJudge, item, at)
        if judge is None:
            return None
        text, path, problems = read_prompt(judge.prompt, self.context, (*at, "prompt"))
        self.problems += [*problems, *find_unfilled(text, self.rubrics, self.context, (*at, "prompt"))]
        return judge.model_copy(update={"prompt": text, "prompt_file": path})

    def _rubric_judge(self, item: Item, at: Location, *, takes_text: bool = True) -> BaseEvaluator | None:
        key = next((key for key in ("rubrics", "criteria", "value") if key in item), "rubrics")
        if key not in item and (item["type"] in BY_CRITERIA or "prompt" in item):
            return self._llm_judge(item, at)
        if item.pop("prompt", None) is not None:
            what = "This prompt is not used: evalhub asks about statements in its own words."
            fix = "Remove it, or remove the statements to judge with the prompt alone."
            self.add_problem((*at, "prompt"), what, fix, "format/unused-prompt", lint=True)
        statements = item.pop(key, None)
        if isinstance(statements, str) and takes_text:
            statements = [statements]
        if statements and isinstance(statements, list):
            statements = self._statements(statements, (*at, key))
            if not statements:
                return None
        fields = item if statements is None else {**item, "rubrics": statements}
        return self._judge(ChecklistJudge, fields, at, rubrics=key)

    def _judge(self, kind: type[E], item: Item, at: Location, **spelled: str) -> E | None:
        """Return an evaluator whose lowest passing score is also called its threshold."""
        threshold = item.pop("threshold", None)
        fields = {**item, "type": kind.model_fields["type"].default}
        if threshold is not None and "min_score" not in item and item.get("required") in (None, True, False):
            fields["min_score"], spelled["min_score"] = threshold, "threshold"
        return self.valid(kind, fields, at, **spelled)

    def _goal_success(self, item: Item, at: Location) -> BaseEvaluator | None:
        if isinstance(value := item.get("value"), str):
            item = {**item, "value": {"goal": value}}
        read = self.value(eval_models.GoalFile, item, at)
        if read is None:
            return None
        assertion, wanted = read
        statement = RubricItem(id="goal", description=f"The agent reached this goal: {wanted.goal}")
        return self.of(ChecklistJudge, assertion, rubrics=(statement,), include_trace=True)

    def _code_judge(self, item: Item, at: Location) -> BaseEvaluator | None:
        known = {*shown_fields(CodeJudge), *CodeJudge.unrunnable, *SPELLINGS["name"], *SPELLINGS["script"]}
        own = {key: value for key, value in item.items() if key in known}
        settings = {key: value for key, value in item.items() if key not in known}
        judge = self.valid(CodeJudge, {**own, "type": "code_judge"}, at)
        if judge is None:
            return None
        key = "command" if "command" in item else "script"
        later = self.context.version.is_later
        values = {"exit_code_decides": later, "config": {**settings, **judge.config}}
        return judge.model_copy(update={"cwd": self._cwd(judge.cwd, judge.script, at, key), **values})

    def _composite(self, item: Item, at: Location) -> BaseEvaluator | None:
        aggregator = item.get("aggregator") or {"type": "weighted_average"}
        if isinstance(aggregator, dict):
            aggregator = self._aggregator(aggregator, (*at, "aggregator"))
        if aggregator is None:
            return None
        fields = {**item, "type": "composite", "aggregator": aggregator}
        fields, spelled = self._with_members(fields, at)
        return self.valid(CompositeEvaluator, fields, at, **spelled) if fields else None

    def _assert_set(self, item: Item, at: Location) -> BaseEvaluator | None:
        fields, spelled = self._with_members(item, at)
        group = self._judge(eval_models.AssertSetFile, fields, at, **spelled) if fields else None
        return CompositeEvaluator.model_validate(dict(group)) if group else None

    def _with_members(self, item: Item, at: Location) -> tuple[Item, dict[str, str]]:
        """Return a group with its evaluators, and how the file spells its keys; nothing if all members are wrong."""
        fields, spelled, problems = unify_keys(item, OF_LIST, self.context.document, at)
        self.problems += problems
        members = fields.get("evaluators")
        if members and isinstance(members, list):
            place = (*at, spelled.get("evaluators", "evaluators"))
            later = self.context.version.is_later
            fields["evaluators"] = self.read(members, place, texts_are_statements=later)
        return (fields if fields.get("evaluators") or not members else {}), spelled

    def _aggregator(self, item: Item, at: Location) -> Kind | None:
        name = str(item.get("type")).replace("-", "_").replace("grader", "judge")
        kind = AGGREGATORS.get(AGGREGATOR_ALIASES.get(name, name))
        if kind is None:
            what = f"Unknown aggregator '{item.get('type')}'."
            fix = f"Use one of {', '.join(AGGREGATORS)}."
            self.add_problem((*at, "type"), what, fix, "format/unknown-aggregator")
            return None
        fields = {**item, "type": kind.model_fields["type"].default}
        aggregator = self.valid(kind, {key: each for key, each in fields.items() if each is not None}, at)
        if isinstance(aggregator, CodeAggregator):
            cwd = self._cwd(aggregator.cwd, aggregator.path, at, "path")
            return aggregator.model_copy(update={"cwd": cwd})
        if isinstance(aggregator, LlmAggregator):
            text, path, problems = read_prompt(
                aggregator.prompt, self.context, (*at, "prompt"), needs_answer=False
            )
            self.problems += problems
            return aggregator.model_copy(update={"prompt": text, "prompt_file": path})
        return aggregator

    def _cwd(self, value: str, script: str, at: Location, key: str) -> str:
        cwd, problems = read_cwd(value, self.context, (*at, "cwd"))
        if not problems:
            problems = script_lints(script, cwd, self.context, (*at, key))
        self.problems += problems
        return cwd

    def _statement(self, item: Json, index: int, at: Location) -> RubricItem | None:
        if isinstance(item, str) and item.strip():
            return RubricItem(id=f"rubric-{index + 1}", description=item.strip())
        if not isinstance(item, dict):
            what = f"A rubric must be text or a mapping, not {describe_kind(item)}."
            self.add_problem(
                at, what, "Write the statement, or 'id:' and 'description:'.", "format/wrong-type"
            )
            return None
        fields = {key: value for key, value in item.items() if value is not None}
        statement = self.valid(RubricItemFile, {"id": f"rubric-{index + 1}", **fields}, at)
        if statement is None:
            return None
        text = statement.description
        if statement.operator == "contradiction":
            text = f"It does not contradict: {text}"
        return RubricItem.model_validate({**statement.model_dump(exclude={"operator"}), "description": text})

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


def _derived_name(evaluator: BaseEvaluator, kind: str) -> str:
    """Return the name that later versions give an evaluator without one."""
    match evaluator:
        case AnswerText():
            return f"{kind}-{len(evaluator.value) if kind in TEXTS_KINDS else evaluator.value[0]}"
        case AnswerPattern():
            return f"{kind}-{evaluator.value[:30]}"
        case SkillTrigger():
            return f"{kind}-{evaluator.skill}"
        case ToolUsed():
            return f"{kind}-{evaluator.tools[0]}"
        case ToolArguments():
            return f"{kind}-{evaluator.tool}"
    return "" if isinstance(evaluator, ExpectedMessages) else kind

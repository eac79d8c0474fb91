"""Translate one eval case of AgentV."""

from __future__ import annotations

from dataclasses import dataclass, field

from evaluators.grading.assertions.expected_messages import ExpectedMessages
from evaluators.grading.criteria import Criteria
from evaluators.grading.judges.checklist_judge import ChecklistJudge
from evaluators.grading.judges.llm_judge import LlmJudge
from evaluators.grading.scores import BaseEvaluator
from evaluators.model import Json
from scenarios.formats.agentv.eval_file_context import EvalFileContext
from scenarios.formats.agentv.eval_models import EvalCaseFile, EvalFile, Execution
from scenarios.formats.agentv.evaluator_reader import ALIASES, EvaluatorReader, with_unique_names
from scenarios.formats.agentv.messages import ReadMessages, chat, message_as_text, prompt, read_messages
from scenarios.formats.positions import Location
from scenarios.formats.problems import Problem
from scenarios.formats.validation import kind, validate
from scenarios.spec import ScenarioSpec

_DEFAULT_KINDS = ("llm_judge", "expected_messages")
"""Evaluators that work without settings."""


@dataclass
class EvalCaseReading:
    """One translated case. Without a `spec`, the problems say why."""

    spec: ScenarioSpec | None = None
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class SuiteDefaults:
    """The settings of a file for all its cases."""

    context: EvalFileContext
    found: EvalFile
    evaluators: tuple[BaseEvaluator, ...] = ()
    """The evaluators of cases without their own."""

    @property
    def execution(self) -> Execution:
        """The suite's execution settings, empty without any."""
        return self.found.execution or Execution()


def read_case(value: Json, defaults: SuiteDefaults, at: Location) -> EvalCaseReading:
    """Translate one case, with all its problems."""
    document = defaults.context.document
    if not isinstance(value, dict):
        what = f"An eval case must be a mapping, not {kind(value)}."
        fix = "Write 'id:', 'input_messages:' and 'expected_outcome:'."
        return EvalCaseReading(problems=[document.problem(at, what, fix=fix, id="format/wrong-type")])
    given = {key: item for key, item in value.items() if item is not None}
    case, problems = validate(EvalCaseFile, given, document, at)
    if case is None:
        return EvalCaseReading(problems=[*problems, *_problems_of_evaluators(given, defaults, at)])
    asked = read_messages(case.input_messages, defaults.context, (*at, "input_messages"))
    expected = read_messages(case.expected_messages or (), defaults.context, (*at, "expected_messages"))
    evaluators, found = _evaluators(case, expected, defaults, at)
    problems += [*asked.problems, *expected.problems, *found]
    problems += _empty_question(asked, defaults, at)
    problems += _nothing_to_judge_by(case, expected, evaluators, defaults, at)
    criteria = _criteria(case, asked, expected, defaults).model_copy(update={"evaluators": evaluators})
    return EvalCaseReading(_spec(case, asked, criteria, defaults, at), problems)


def _problems_of_evaluators(given: dict[str, Json], defaults: SuiteDefaults, at: Location) -> list[Problem]:
    """Read the evaluators of an invalid case, to report all problems at once."""
    reader = EvaluatorReader(defaults.context)
    execution = given.get("execution")
    for holder, here in ((given, at), (execution, (*at, "execution"))):
        listed = holder.get("evaluators") if isinstance(holder, dict) else None
        if isinstance(listed, list):
            reader.read(listed, (*here, "evaluators"))
    return reader.problems


def _evaluators(
    case: EvalCaseFile, expected: ReadMessages, defaults: SuiteDefaults, at: Location
) -> tuple[tuple[BaseEvaluator, ...], list[Problem]]:
    """Return the evaluators of a case: its own, else its suite's, else the default."""
    reader = EvaluatorReader(defaults.context)
    listed, here = _list_values(case, at)
    found = list(defaults.evaluators if listed is None else reader.read(listed, here))
    if case.rubrics and (rubric := reader.rubric(case.rubrics, (*at, "rubrics"), name="rubric")):
        found.insert(0, rubric)
    calls = any(message.tool_calls for message in expected.messages)
    if (
        calls
        and _checks_calls(case, defaults)
        and not any(isinstance(one, ExpectedMessages) for one in found)
    ):
        found.append(ExpectedMessages())
    if not found and not reader.problems:
        found += _default(case, defaults, reader, at)
    return with_unique_names(found), reader.problems


def _list_values(case: EvalCaseFile, at: Location) -> tuple[list[Json] | None, Location]:
    own = case.execution or Execution()
    if own.evaluators is not None:
        return own.evaluators, (*at, "execution", "evaluators")
    return case.evaluators, (*at, "evaluators")


def _checks_calls(case: EvalCaseFile, defaults: SuiteDefaults) -> bool:
    own = (case.execution or Execution()).expected_messages
    return bool(own if own is not None else defaults.execution.expected_messages in (None, True))


def _default(
    case: EvalCaseFile, defaults: SuiteDefaults, reader: EvaluatorReader, at: Location
) -> list[BaseEvaluator]:
    name = case.evaluator or defaults.found.evaluator or "llm_judge"
    name = ALIASES.get(name, name)
    if name in _DEFAULT_KINDS:
        return [LlmJudge() if name == "llm_judge" else ExpectedMessages()]
    where = (*at, "evaluator") if case.evaluator else ("evaluator",)
    reader.problems.append(
        defaults.context.document.problem(
            where,
            f"The evaluator '{name}' needs settings.",
            fix="List it under 'evaluators:' with its settings, or use llm_judge.",
            id="format/unknown-evaluator",
        )
    )
    return []


def _criteria(
    case: EvalCaseFile, asked: ReadMessages, expected: ReadMessages, defaults: SuiteDefaults
) -> Criteria:
    own = (case.execution or Execution()).threshold
    threshold = own if own is not None else defaults.execution.threshold
    answers = [text for turn in expected.turns if (text := message_as_text(turn))]
    return Criteria(
        threshold=1.0 if threshold is None else threshold,
        expected_outcome=(case.expected_outcome or "").strip(),
        reference_answer=answers[0] if answers else "",
        input_messages=tuple(asked.messages),
        expected_messages=tuple(expected.messages),
        input_files=asked.files,
        guidelines=asked.guidelines,
    )


def _spec(
    case: EvalCaseFile, asked: ReadMessages, criteria: Criteria, defaults: SuiteDefaults, at: Location
) -> ScenarioSpec:
    whole, named = prompt(asked.turns, embed=True), prompt(asked.turns, embed=False)
    own = case.execution or Execution()
    return ScenarioSpec(
        key=case.id,
        description=(case.note or "").strip(),
        prompt=whole,
        agent_prompt=named if named != whole else "",
        messages=chat(asked.turns),
        conversation=case.conversation_id or "",
        target=own.target or defaults.execution.target or defaults.found.target or "",
        folder=defaults.context.folder,
        criteria=criteria,
        file=defaults.context.document.file,
        line=defaults.context.document.positions.line((*at, "id")),
    )


def _empty_question(asked: ReadMessages, defaults: SuiteDefaults, at: Location) -> list[Problem]:
    if asked.problems or prompt(asked.turns, embed=True).strip():
        return []
    what = "The messages contain no question besides guidelines."
    fix = "Add a user message with the question."
    return [
        defaults.context.document.problem((*at, "input_messages"), what, fix=fix, id="format/empty-question")
    ]


def _nothing_to_judge_by(
    case: EvalCaseFile,
    expected: ReadMessages,
    found: tuple[BaseEvaluator, ...],
    defaults: SuiteDefaults,
    at: Location,
) -> list[Problem]:
    judges = [one for one in found if isinstance(one, LlmJudge) and not one.prompt]
    if not judges or case.expected_outcome or any(message_as_text(turn) for turn in expected.turns):
        return []
    if any(isinstance(one, ChecklistJudge) for one in found):
        return []
    what = "The judge does not know what a good answer is."
    fix = "Add 'expected_outcome:'."
    return [defaults.context.document.problem(at, what, fix=fix, id="format/no-expectation", lint=True)]

"""Translate one eval case of AgentV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evaluators.grading.assertions.expected_messages import ExpectedMessages
from evaluators.grading.evaluate import Criteria
from evaluators.grading.judges.checklist_judge import ChecklistJudge
from evaluators.grading.judges.llm_judge import LlmJudge
from evaluators.grading.scores import BaseEvaluator
from evaluators.model import Json
from scenarios.formats.agentv.eval_models import DefaultTest, EvalCaseFile, EvalFile, Execution, TargetFile
from scenarios.formats.agentv.evaluator_reader import ALIASES, EvaluatorReader, with_unique_names
from scenarios.formats.agentv.file_versions import (
    OF_CASE,
    OF_LIST,
    EvalFileContext,
    messages_of,
    unify_keys,
    without_later_keys,
)
from scenarios.formats.agentv.imported_cases import find_prompt_values, merge_metadata
from scenarios.formats.agentv.messages import (
    ReadMessages,
    join_messages,
    list_chat_messages,
    message_as_text,
    read_messages,
)
from scenarios.formats.agentv.prompt_matrix import (
    Filling,
    PromptTemplate,
    cross_with_prompts,
    environment_problems,
    fill_case,
)
from scenarios.formats.parsed import (
    CaseReading,
    Location,
    PositionedDocument,
    Problem,
    describe_kind,
    line_of,
    validate,
)
from scenarios.spec import MatrixEntry, ScenarioSpec, TrialLimits

_DEFAULT_KINDS = ("llm_judge", "expected-messages")
"""Evaluators that work without settings."""


@dataclass(frozen=True)
class SuiteDefaults:
    """The settings of a file for all its cases."""

    context: EvalFileContext
    found: EvalFile
    evaluators: tuple[BaseEvaluator, ...] = ()
    """The evaluators of cases without their own; in later versions of all cases."""
    prompts: tuple[PromptTemplate, ...] = ()
    targets: tuple[TargetFile, ...] = ()
    document: PositionedDocument | None = None
    """The document of the settings, which a case of another file is not in."""

    @property
    def execution(self) -> Execution:
        """The suite's execution settings, empty without any."""
        return self.found.execution or Execution()

    @property
    def default_test(self) -> DefaultTest:
        """What all tests share, empty without any."""
        return self.found.default_test or DefaultTest()


def read_cases(value: Json, defaults: SuiteDefaults, at: Location) -> list[CaseReading]:
    """Translate one case, with all its problems: one scenario, or one for each prompt of the file."""
    document = defaults.context.document
    if not isinstance(value, dict):
        what = f"An eval case must be a mapping, not {describe_kind(value)}."
        fix = "Write 'id:', 'input_messages:' and 'expected_outcome:'."
        return [CaseReading(problems=[document.problem(at, what, fix=fix, id="format/wrong-type")])]
    known, lints = without_later_keys(value, defaults.context.version, document, at)
    fields, spelled, problems = unify_keys(known, OF_CASE, document, at)
    problems += lints
    if defaults.context.version.is_later:
        problems += environment_problems(value, defaults.context, at)
    readings = [
        _read_filled(filled_case, spelled, template, defaults, at)
        for filled_case, template in cross_with_prompts(fields, defaults.prompts)
    ]
    readings[0].problems[:0] = problems
    return readings


def _read_filled(
    case: dict[str, Json],
    spelled: dict[str, str],
    template: PromptTemplate | None,
    defaults: SuiteDefaults,
    at: Location,
) -> CaseReading:
    """Translate a case with one prompt, after filling in its variables."""
    context = defaults.context
    case_vars = case.get("vars")
    variables = {**defaults.default_test.vars, **(case_vars if isinstance(case_vars, dict) else {})}
    filling = Filling(context, variables, is_strict=context.version.has_matrix)
    if variables or template:
        case = fill_case(case, filling, at, spelled, template.at if template else None)
    case = _with_whole_messages(case, filling, defaults, at)
    reading = _read_case(case, spelled, defaults, at)
    reading.problems[:0] = filling.problems
    return reading


def _with_whole_messages(
    case: dict[str, Json], filling: Filling, defaults: SuiteDefaults, at: Location
) -> dict[str, Json]:
    """Return a case whose shorthands are messages, after those of the file."""
    whole = dict(case)
    if "expected_messages" not in whole and defaults.prompts and "expected_output" in filling.variables:
        value = filling.variables["expected_output"]
        whole["expected_messages"] = filling.fill(value, (*at, "vars", "expected_output"))
    if "expected_messages" in whole:
        whole["expected_messages"] = messages_of(whole["expected_messages"], "assistant")
    execution = whole.get("execution")
    is_alone = isinstance(execution, dict) and execution.get("skip_defaults") is True
    shared, shared_files = (None, None) if is_alone else _shared_input(filling, defaults)
    files = whole.get("input_files") or shared_files
    text = whole.get("input_messages")
    if files and isinstance(files, list) and isinstance(text, str):
        parts = [{"type": "file", "value": name} for name in files]
        whole["input_messages"] = [{"role": "user", "content": [*parts, {"type": "text", "value": text}]}]
    elif "input_messages" in whole:
        whole["input_messages"] = messages_of(text, "user")
    shared = messages_of(shared, "user")
    if shared and isinstance(shared, list) and isinstance(whole.get("input_messages"), list):
        whole["input_messages"] = [*shared, *whole["input_messages"]]
    return whole


def _shared_input(filling: Filling, defaults: SuiteDefaults) -> tuple[Json, Json]:
    """Return the file's own input and input files, with the variables of a case."""
    found = defaults.found
    if not (filling.variables or defaults.prompts):
        return found.input, found.input_files
    document = defaults.document or defaults.context.document
    # A copy with the same list of problems.
    of_file = replace(filling, context=replace(filling.context, document=document))
    return of_file.fill(found.input, ("input",)), of_file.fill(found.input_files, ("input_files",))


def _read_case(
    fields: dict[str, Json], spelled: dict[str, str], defaults: SuiteDefaults, at: Location
) -> CaseReading:
    document = defaults.context.document
    execution, problems = _unified_execution(fields, document, at)
    fields = {**fields, **execution}
    case, more = validate(EvalCaseFile, fields, document, at, spelled=spelled)
    problems += more
    if defaults.context.version.is_later and "input_messages" not in fields:
        place = line_of((*at, "input_messages"))
        problems = [problem for problem in problems if problem.where != place]
        # Prompts that can't be read have problems of their own.
        problems += [] if defaults.found.prompts else [_missing_input(defaults, at)]
    if case is None:
        return CaseReading(problems=[*problems, *_problems_of_evaluators(fields, spelled, defaults, at)])
    key_of = {name: (*at, spelled.get(name, name)) for name in OF_CASE}
    asked = read_messages(case.input_messages, defaults.context, key_of["input_messages"])
    expected = read_messages(case.expected_messages or (), defaults.context, key_of["expected_messages"])
    evaluators, more = _evaluators(case, expected, spelled, defaults, at)
    problems += [*asked.problems, *expected.problems, *more]
    problems += _empty_question(asked, defaults, key_of["input_messages"])
    problems += _nothing_to_judge_by(case, expected, evaluators, defaults, at)
    shared = merge_metadata(defaults.found.metadata, defaults.default_test.metadata)
    values = find_prompt_values(evaluators, merge_metadata(shared, case.metadata), case.rubrics)
    found = {"evaluators": evaluators, "prompt_values": values}
    criteria = _criteria(case, asked, expected, defaults).model_copy(update=found)
    return CaseReading(_spec(case, asked, criteria, defaults, at), problems)


def _matrix(targets: Sequence[TargetFile]) -> tuple[MatrixEntry, ...] | None:
    """Return the targets of a case if there are several, or one with two names."""
    if len(targets) < 2 and not any(one.id and one.target != one.id for one in targets):
        return None
    return tuple(
        MatrixEntry(target=one.target, id=one.id if one.id and one.id != one.target else "")
        for one in targets
    )


def _missing_input(defaults: SuiteDefaults, at: Location) -> Problem:
    what = "The key 'input' is missing."
    fix = "Add 'input:' to the case, or 'prompts:' to the file."
    return defaults.context.document.problem((*at, "input"), what, fix=fix, id="format/missing-field")


def _unified_execution(
    fields: Mapping[str, Json], document: PositionedDocument, at: Location
) -> tuple[dict[str, Json], list[Problem]]:
    """Return the case's `execution` with this package's keys, if it has some."""
    if not isinstance(execution := fields.get("execution"), dict):
        return {}, []
    unified, _, problems = unify_keys(execution, OF_LIST, document, (*at, "execution"))
    return {"execution": unified}, problems


def _problems_of_evaluators(
    fields: dict[str, Json], spelled: Mapping[str, str], defaults: SuiteDefaults, at: Location
) -> list[Problem]:
    """Read the evaluators of an invalid case, to report all problems at once."""
    reader = EvaluatorReader(defaults.context)
    execution = fields.get("execution")
    for holder, here in ((fields, at), (execution, (*at, "execution"))):
        listed = holder.get("evaluators") if isinstance(holder, dict) else None
        if isinstance(listed, list):
            key = spelled.get("evaluators", "evaluators") if holder is fields else "evaluators"
            reader.read(listed, (*here, key), texts_are_statements=_texts_are_statements(key, defaults))
    return reader.problems


def _texts_are_statements(key: str, defaults: SuiteDefaults) -> bool:
    return key != "evaluators" or defaults.context.version.is_later


def _evaluators(
    case: EvalCaseFile,
    expected: ReadMessages,
    spelled: Mapping[str, str],
    defaults: SuiteDefaults,
    at: Location,
) -> tuple[tuple[BaseEvaluator, ...], list[Problem]]:
    """Return the evaluators of a case: its own, else its suite's, else the default.

    In later versions those of the suite are added to its own.
    """
    reader = EvaluatorReader(defaults.context, rubrics=case.rubrics or ())
    execution = case.execution or Execution()
    listed, key = case.evaluators, spelled.get("evaluators", "evaluators")
    here: Location = (*at, key)
    if execution.evaluators is not None and (listed is None or not defaults.context.version.is_later):
        listed, here, key = execution.evaluators, (*at, "execution", "evaluators"), "evaluators"
    evaluators: list[BaseEvaluator] = []
    if listed is not None:
        evaluators += reader.read(listed, here, texts_are_statements=_texts_are_statements(key, defaults))
    if listed is None or (defaults.context.version.is_later and not execution.skip_defaults):
        evaluators += defaults.evaluators
    name = "rubrics" if defaults.context.version.is_later else "rubric"
    if case.rubrics and (rubric := reader.rubric(case.rubrics, (*at, "rubrics"), name=name)):
        evaluators.insert(0, rubric)
    calls = any(message.tool_calls for message in expected.messages)
    if (
        calls
        and _checks_calls(case, defaults)
        and not any(isinstance(one, ExpectedMessages) for one in evaluators)
    ):
        evaluators.append(ExpectedMessages())
    if not evaluators and not reader.problems:
        evaluators += _default(case, defaults, reader, at)
    return with_unique_names(evaluators), reader.problems


def _checks_calls(case: EvalCaseFile, defaults: SuiteDefaults) -> bool:
    setting = (case.execution or Execution()).expected_messages
    if defaults.context.version.is_later and setting is None and defaults.execution.expected_messages is None:
        return False
    return bool(setting if setting is not None else defaults.execution.expected_messages in (None, True))


def _default(
    case: EvalCaseFile, defaults: SuiteDefaults, reader: EvaluatorReader, at: Location
) -> list[BaseEvaluator]:
    name = case.evaluator or defaults.found.evaluator or "llm_judge"
    kebab = name.replace("_", "-")
    type_name = ALIASES.get(kebab, kebab)
    if type_name in _DEFAULT_KINDS:
        return [LlmJudge() if type_name == "llm_judge" else ExpectedMessages()]
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
    answers = [text for turn in expected.turns if (text := message_as_text(turn))]
    reference = answers[-1 if defaults.context.version.is_later else 0] if answers else ""
    thresholds = (
        (case.execution or Execution()).threshold,
        case.threshold,
        defaults.default_test.threshold,
        defaults.execution.threshold,
        defaults.found.threshold,
    )
    return Criteria(
        threshold=next((each for each in thresholds if each is not None), defaults.context.version.threshold),
        expected_outcome=(case.expected_outcome or "").strip(),
        reference_answer=reference,
        input_messages=tuple(asked.messages),
        expected_messages=tuple(expected.messages),
        input_files=asked.files,
        guidelines=asked.guidelines,
    )


def _spec(
    case: EvalCaseFile, asked: ReadMessages, criteria: Criteria, defaults: SuiteDefaults, at: Location
) -> ScenarioSpec:
    whole, named = join_messages(asked.turns, embed=True), join_messages(asked.turns, embed=False)
    execution = case.execution or Execution()
    targets = execution.targets or list(defaults.targets)
    return ScenarioSpec(
        key=case.id,
        description=(case.note or "").strip(),
        prompt=whole,
        agent_prompt=named if named != whole else "",
        messages=list_chat_messages(asked.turns),
        conversation=case.conversation_id or "",
        target=execution.target or next((one.target for one in targets), ""),
        matrix=None if execution.target else _matrix(targets),
        limits=TrialLimits(timeout_seconds=defaults.found.timeout_seconds),
        folder=defaults.context.folder,
        criteria=criteria,
        file=defaults.context.document.file,
        line=defaults.context.document.positions.line((*at, "id")),
    )


def _empty_question(asked: ReadMessages, defaults: SuiteDefaults, at: Location) -> list[Problem]:
    if asked.problems or join_messages(asked.turns, embed=True).strip():
        return []
    what = "The messages contain no question besides guidelines."
    fix = "Add a user message with the question."
    return [defaults.context.document.problem(at, what, fix=fix, id="format/empty-question")]


def _nothing_to_judge_by(
    case: EvalCaseFile,
    expected: ReadMessages,
    evaluators: tuple[BaseEvaluator, ...],
    defaults: SuiteDefaults,
    at: Location,
) -> list[Problem]:
    document = defaults.context.document
    if any(message_as_text(turn) for turn in expected.turns) or case.expected_outcome:
        return []
    if (
        defaults.context.version.is_later
        and (not (case.evaluators or case.rubrics or (case.execution and case.execution.evaluators)))
        and not defaults.evaluators
    ):
        what = "The case says nothing about a good answer."
        fix = "Add 'criteria:', 'expected_output:' or 'assertions:'."
        return [document.problem(at, what, fix=fix, id="format/no-criteria")]
    judges = [one for one in evaluators if isinstance(one, LlmJudge) and not one.prompt]
    later = defaults.context.version.is_later
    if not judges or (not later and any(isinstance(one, ChecklistJudge) for one in evaluators)):
        return []
    what = "The judge does not know what a good answer is."
    fix = f"Add '{'criteria' if later else 'expected_outcome'}:'."
    return [document.problem(at, what, fix=fix, id="format/no-expectation", lint=True)]

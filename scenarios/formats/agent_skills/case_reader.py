"""Read the cases of `evals/evals.json` and of lists of trigger queries."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from evaluators.grading.evaluate import Criteria
from evaluators.grading.gates import Gate
from evaluators.grading.judges.rubric import Criterion, JudgeCriteria, RubricCriteria
from evaluators.model import Json
from scenarios.formats.agent_skills.case_checks import (
    OF_COMMANDS,
    OWN_TOOLS,
    READ,
    is_check,
    read_answer_checks,
    read_check,
    read_commands,
    type_of,
)
from scenarios.formats.agent_skills.case_files import SkillContext, find_path, read_files, read_trigger
from scenarios.formats.agent_skills.case_lists import (
    EXPECTED,
    LISTS,
    NOT_A_NAME,
    PROMPTS,
    TEXTS,
    SkillCase,
    join_words,
    key_of_id,
    statement_ids,
)
from scenarios.formats.parsed import (
    FixtureFile,
    Location,
    PositionedDocument,
    Problem,
    describe_kind,
    did_you_mean,
)
from scenarios.spec import ScenarioSpec, TrialLimits

_NAMES = ("name", "eval_name", "title", "description")
_KNOWN = tuple(SkillCase.model_fields)
_OF_STATEMENT = (*TEXTS, "id", "name", "type", "kind", "pattern", "passed", "evidence")
"""Keys of a statement that say nothing more than its text, or are read."""
_EXPECTED_TEXTS = ("expected", "expect")
_SIMILAR = 0.8
"""From which likeness on a key is a misspelling: `expected_status` isn't one of `expected_output`."""
SHOULD, SHOULD_NOT = "should-trigger", "should-not-trigger"
"""Tags of cases that say whether the skill must be loaded."""


@dataclass
class ReadCase:
    """One case; without a `spec`, the problems say why."""

    spec: ScenarioSpec | None = None
    files: tuple[FixtureFile, ...] = ()
    names: tuple[str, ...] = ()
    """What gates.yaml may call it."""
    unread: tuple[str, ...] = ()
    """Keys that nothing reads, of the case and of its statements."""
    problems: list[Problem] = field(default_factory=list)


@dataclass
class _Statements:
    texts: list[str] = field(default_factory=list)
    gates: list[Gate] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def read_skill_case(case: Json, context: SkillContext, at: Location, position: int) -> ReadCase:
    """Read one case; `position` counts from 0 and is its id if it has none."""
    read, document = ReadCase(), context.document
    if not isinstance(case, dict):
        what = f"A case must be an object, not {describe_kind(case)}."
        fix = 'Write {"id": 1, "prompt": "..."}.'
        read.problems.append(document.problem(at, what, fix=fix, id="format/wrong-type"))
        return read
    key, read.names = _key(case, context, at, position, read.problems)
    prompt, prompt_at = _prompt(case, context, at, read.problems)
    statements = _statements(case, context, at)
    read.problems += statements.problems
    read.files = tuple(read_files(case, context, at, read.problems))
    loaded = read_trigger(case, context, at, read.problems)
    checks = context.gates.checks_of(read.names)
    expected = _expected(case, context, at, read.problems)
    gates = (*loaded, *statements.gates, *checks.gates)
    rubric = _rubric(statements.texts, expected)
    is_judged = rubric is not None or bool(gates)
    if not is_judged:
        read.problems.append(_nothing_to_judge(document, at))
    others = _other_keys(case)
    lost = {name for name, value in others.items() if _are_statements(value, is_judged=is_judged)}
    problems = _unread_values(others, lost, context, at)
    read.problems += problems.values()
    read.unread = (*(name for name in others if name not in problems), *statements.unread)
    if any(not each.lint for each in read.problems):
        return read
    read.spec = ScenarioSpec(
        key=key,
        description=_first_text(case, _NAMES),
        prompt=prompt,
        setup=tuple(checks.setup),
        limits=TrialLimits(timeout_seconds=checks.timeout_secs, max_turns=checks.max_turns),
        tags=tuple(
            dict.fromkeys(
                (*_tags(case), *checks.tags, *[SHOULD if gate.expected else SHOULD_NOT for gate in loaded])
            )
        ),
        criteria=Criteria(
            tool=context.gates.tool,
            gates=gates,
            judge=JudgeCriteria(rubric=rubric, pass_threshold=1.0) if rubric else None,
        ),
        metadata=others,
        file=document.file,
        line=document.positions.line(prompt_at),
    )
    return read


def _key(
    case: dict[str, Json], context: SkillContext, at: Location, position: int, problems: list[Problem]
) -> tuple[str, tuple[str, ...]]:
    """Return a case's key and what it may be called: a number n is `eval-n`, as in the folders of skill-creator."""
    case_id, name = case.get("id", case.get("eval_id")), _first_text(case, _NAMES)
    if key := key_of_id(case_id):
        return key, (key, str(case_id), name)
    if case_id is not None:
        what = f"An id must be a whole number or text, not {describe_kind(case_id)}."
        fix = 'Write "id": 1, or a short name.'
        problems.append(context.document.problem((*at, "id"), what, fix=fix, id="format/wrong-type"))
    if context.trigger_of(case)[0]:
        key = join_words(_first_text(case, PROMPTS), "-") or f"query-{position + 1}"
        return key, (key, name)
    if case_id is None and not at:
        # A file with one case is called by its name.
        key = posixpath.splitext(posixpath.basename(context.document.file))[0]
        return key, (key, name)
    if case_id is None:
        what = f"The case has no id, so its results are kept as 'eval-{position}'."
        fix = 'Add "id", so that they stay its own when cases are moved.'
        problems.append(context.document.problem(at, what, fix=fix, id="format/no-id", lint=True))
    return f"eval-{position}", (f"eval-{position}", name)


def _prompt(
    case: dict[str, Json], context: SkillContext, at: Location, problems: list[Problem]
) -> tuple[str, Location]:
    name = _name_of_prompt(case)
    if not name:
        others = (each for each in case if each not in _KNOWN and isinstance(case[each], str))
        close = next((each for each in others if did_you_mean(each, PROMPTS, _SIMILAR)), "")
        what = "The case has no prompt."
        fix = f"Rename '{close}' to 'prompt'." if close else 'Add "prompt" with what the agent is asked.'
        problems.append(context.document.problem(at, what, fix=fix, id="format/missing-field"))
        return "", at
    prompt = _text(case, name, context, at, problems)
    if not prompt and (case[name] is None or isinstance(case[name], str)):
        what, fix = "The prompt is empty.", "Write what the agent is asked."
        problems.append(context.document.problem((*at, name), what, fix=fix, id="format/empty-value"))
    return prompt, (*at, name)


def _name_of_prompt(case: dict[str, Json]) -> str:
    return next((name for name in PROMPTS if name in case), "")


def _expected(case: dict[str, Json], context: SkillContext, at: Location, problems: list[Problem]) -> str:
    names = ["expected_output"]
    names += ["expected_behavior"] * (not isinstance(case.get("expected_behavior"), list))
    said, _ = context.trigger_of(case)
    names += [name for name in _EXPECTED_TEXTS if isinstance(case.get(name), str) and name != said]
    texts = [_text(case, name, context, at, problems) for name in names]
    return "\n".join(dict.fromkeys(filter(None, texts)))


def _text(
    case: dict[str, Json], name: str, context: SkillContext, at: Location, problems: list[Problem]
) -> str:
    value = case.get(name)
    if value is None or isinstance(value, str):
        return (value or "").strip()
    what = f"'{name}' must be text, not {describe_kind(value)}."
    fix = f'Write "{name}" as one text.'
    if name == "expected_output" and isinstance(value, list):
        fix = "Write one text; a list of statements belongs in 'assertions'."
    problems.append(context.document.problem((*at, name), what, fix=fix, id="format/wrong-type"))
    return ""


def _first_text(case: dict[str, Json], names: Sequence[str]) -> str:
    texts = (value.strip() for name in names if isinstance(value := case.get(name), str))
    return next((text for text in texts if text), "")


def _tags(case: dict[str, Json]) -> list[str]:
    tags = case.get("tags")
    return [each.strip() for each in tags if isinstance(each, str)] if isinstance(tags, list) else []


def _other_keys(case: dict[str, Json]) -> dict[str, Json]:
    """Return what nothing reads; a second prompt isn't read either."""
    prompt = _name_of_prompt(case)
    return {
        name: value
        for name, value in case.items()
        if name not in _KNOWN
        or (name in PROMPTS and name != prompt)
        or (name in _EXPECTED_TEXTS and not isinstance(value, str))
    }


def _unread_values(
    others: dict[str, Json], lost: Set[str], context: SkillContext, at: Location
) -> dict[str, Problem]:
    """Return the problems of keys that are lost, name a file, or are misspelled."""
    found = {}
    for name, value in others.items():
        if name in lost:
            what = f"'{name}' is a list of texts that nothing reads."
            fix = "Write what must hold as sentences in 'assertions', other data as one text or an object."
            found[name] = context.document.problem((*at, name), what, fix=fix, id="format/unknown-list")
        elif path := find_path(name, value, context):
            what = f"'{name}' names '{path}', and nothing reads it."
            fix = f"Write 'files': ['{path}'], if the agent needs it."
            id = "format/unread-file"
            found[name] = context.document.problem((*at, name), what, fix=fix, id=id, lint=True)
        elif name not in _KNOWN and (close := did_you_mean(name, _KNOWN, _SIMILAR)):
            what = f"Unknown key '{name}'."
            id = "format/unknown-key"
            found[name] = context.document.problem((*at, name), what, fix=close, id=id, lint=True)
    return found


def _are_statements(value: Json, *, is_judged: bool) -> bool:
    """Return whether a list may be one of statements; of a case with statements, one of names isn't."""
    if not isinstance(value, list):
        return False
    texts = [_text_of(item) for item in value]
    are_texts = bool(texts) and all(texts)
    return are_texts and (not is_judged or any(re.search(NOT_A_NAME, text) for text in texts))


def _text_of(item: Json) -> str:
    """Return the text of a statement; empty for what isn't one."""
    if isinstance(item, dict):
        return _first_text(item, TEXTS)
    return item.strip() if isinstance(item, str) else ""


def _statements(case: dict[str, Json], context: SkillContext, at: Location) -> _Statements:
    statements = _Statements()
    behavior = ("expected_behavior",) if isinstance(case.get("expected_behavior"), list) else ()
    for name in (*LISTS, *behavior):
        value = case.get(name)
        if value is None:
            continue
        if name == "success_criteria" and not isinstance(value, list):
            # Other programs have a text or settings there.
            statements.texts += [value.strip()] if isinstance(value, str) and value.strip() else []
            statements.unread += [] if isinstance(value, str) else [name]
            continue
        if not isinstance(value, list):
            what = f"'{name}' must be a list of statements, not {describe_kind(value)}."
            fix = 'Write ["The output has a title.", ...].'
            statements.problems.append(
                context.document.problem((*at, name), what, fix=fix, id="format/wrong-type")
            )
            continue
        # The same statements may be under two names, for two programs.
        earlier = set(statements.texts)
        for index, item in enumerate(value):
            _read_statement(item, statements, earlier, context, (*at, name, index))
    statements.gates += read_answer_checks(case, context.document, at, statements.problems)
    _read_commands(case, statements, context, at)
    forbidden = case.get("forbidden")
    for each in forbidden if isinstance(forbidden, list) else [forbidden]:
        if text := _text_of(each):
            statements.texts.append(f"This must not be the case: {text}")
    return statements


def _read_statement(
    item: Json, statements: _Statements, earlier: Set[str], context: SkillContext, at: Location
) -> None:
    if isinstance(item, dict) and is_check(item):
        name = _first_text(item, ("name", "id", *TEXTS))
        # A scorer's pattern may be one of a command.
        where = "either" if "scorers" in at else "answer"
        statements.gates += read_check(item, name, context.document, at, statements.problems, where=where)
        statements.unread += [name for name in item if name not in (*_OF_STATEMENT, *READ)]
        return
    is_command = isinstance(item, dict) and type_of(item) in OF_COMMANDS
    if is_command and any(item.get(name) for name in ("value", "command", "cmd")):
        _read_commands({type_of(item): item}, statements, context, at)
        return
    text = _text_of(item)
    if not text and isinstance(item, dict) and type_of(item) and len(item) > 1:
        statements.problems.append(_unread_check(item, context, at))
        return
    if not text:
        what = "A statement needs text."
        fix = 'Write it as text, or as an object with "text".'
        statements.problems.append(context.document.problem(at, what, fix=fix, id="format/empty-value"))
        return
    if isinstance(item, dict):
        statements.unread += [name for name in item if name not in _OF_STATEMENT]
    if text not in earlier:
        statements.texts.append(text)


def _read_commands(
    case: dict[str, Json], statements: _Statements, context: SkillContext, at: Location
) -> None:
    for each in read_commands(case, context.document, at, statements.problems):
        if isinstance(each, str):
            statements.texts.append(each)
        else:
            statements.gates.append(each)


def _unread_check(item: dict[str, Json], context: SkillContext, at: Location) -> Problem:
    """Return the hint about a check by something else than a text, a pattern, a file or a command."""
    written = item.get("type", item.get("kind"))
    what = f"Nothing reads a check of type '{written}'."
    if type_of(item) in OWN_TOOLS:
        what = f"A check of type '{written}' names a tool of one agent's own, so it is not run."
    fix = "Describe in a sentence what must hold, or write a gate in gates.yaml."
    return context.document.problem(at, what, fix=fix, id="format/unread-check", lint=True)


def _rubric(texts: Sequence[str], expected: str) -> RubricCriteria | None:
    """Return the rubric of a case: its statements, else the one that its expected output is reached."""
    if texts:
        ids = statement_ids(texts)
        criteria = (
            Criterion(id=id, weight=1.0, description=text) for id, text in zip(ids, texts, strict=True)
        )
        return RubricCriteria(form="statements", criteria=tuple(criteria), expected=expected)
    if expected:
        criterion = Criterion(id=EXPECTED, weight=1.0, description=expected)
        return RubricCriteria(form="statements", criteria=(criterion,))
    return None


def _nothing_to_judge(document: PositionedDocument, at: Location) -> Problem:
    what = "Nothing judges this case: its trials are compared by tool use, cost and time only."
    fix = "Add 'expected_output', 'assertions' or gates in gates.yaml."
    return document.problem(at, what, fix=fix, id="format/nothing-to-judge", lint=True)

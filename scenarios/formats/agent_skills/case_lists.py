"""Find the cases in a skill's eval file, under whichever name authors have given their list.

Also their keys and the ids of their statements, which suites and imported results share. The reader accepts other
keys, so a case is checked there key by key.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from evaluators.model import Json
from scenarios.formats.parsed import Location, reads_as
from scenarios.formats.tool_forge import matches as is_tool_forge_file

Text = Annotated[str, Field(pattern=r"\S")]
Statements = Annotated[list[Any], reads_as("statements")]


class StatementObject(BaseModel):
    """A statement as an object; the first text counts."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    text: Any = None
    """What must be true after the task, as one sentence."""
    criterion: Any = None
    assertion: Any = None
    description: Any = None
    statement: Any = None
    check: Any = None


class NamedFile(BaseModel):
    """A file of a case as an object."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    path: Text


class SkillCase(BaseModel):
    """One case of a skill, or one trigger query."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    id: int | Text | None = None
    """A number or a short name: it keeps the case's results together when cases are moved."""
    eval_id: int | Text | None = None
    """Another name of `id`, as in skill-creator's results."""
    prompt: Text | None = None
    """What the agent is asked."""
    query: Text | None = None
    """Another name of `prompt`, as trigger queries have it."""
    input: Text | None = None
    """Another name of `prompt`, as the four after it."""
    task: Text | None = None
    question: Text | None = None
    user_prompt: Text | None = None
    user_request: Text | None = None
    scenario: Text | None = None
    should_trigger: bool | str | None = None
    """Whether the agent must load the skill for this prompt, or must not; or the name of the skill that it must load."""
    shouldTrigger: bool | str | None = None
    expected_trigger: bool | str | None = None
    expected_skill: str | None = None
    """The skill that the agent must load; null for none."""
    expect_skill: str | None = None
    expected_output: str | None = None
    """What the agent should produce, as one text; a judge reads it with the statements, or alone."""
    expected_behavior: str | Statements | None = None
    """Another name of `expected_output`, or of `assertions` where it is a list."""
    expected: Any = None
    """Another name of `expected_output` where it is a text, as `expect`; of a trigger query, `trigger` or `no-trigger`."""
    expect: Any = None
    assertions: Statements | None = None
    """Statements that a judge checks one by one."""
    expectations: Statements | None = None
    """Another name of `assertions`."""
    checks: Statements | None = None
    """Another name of `assertions`."""
    success_criteria: Any = None
    """Another name of `assertions`, also as one text."""
    scorers: Statements | None = None
    """Another name of `assertions`."""
    forbidden: Text | list[Text] | None = None
    """Statements that must not hold."""
    must_contain: Any = None
    """Texts that the answer contains, as gates; `must_not_contain` those that it doesn't."""
    must_not_contain: Any = None
    expected_calls: Any = None
    """Commands that the agent runs, as gates: each with `command`, and `required_flags` and `forbidden_flags`."""
    expected_commands: Any = None
    """Another name of `expected_calls`, also with lines."""
    files: Text | list[Text | NamedFile] | None = None
    """Files and folders that the agent gets, relative to the eval file, the skill or the upload."""
    name: Any = None
    eval_name: Any = None
    title: Any = None
    description: Any = None
    skill: Any = None
    """The skill that the case is about; the file's folder says it, too."""
    skills: Any = None
    tags: Any = None


LISTS = (
    *(name for name, field in SkillCase.model_fields.items() if field.annotation == Statements | None),
    "success_criteria",
)
"""Names under which statements are written."""
TEXTS = tuple(StatementObject.model_fields)
"""Keys of a statement that is an object, the first one present counts."""
NOT_A_NAME = r"[^A-Za-z0-9_.:/@#-]"
"""Matches what names of modes, tags and skills don't have, and sentences do."""
EXPECTED = "expected_output"
"""The id of the statement that stands for a case's expected output where it has no others."""
_ID_LENGTH = 60
"""Characters of an id made from words."""


def key_of_id(id: Json) -> str:
    """Return the key of a case with this id: a text as it is, a number n as `eval-n`, as skill-creator calls its folder.

    Empty for anything else.
    """
    if isinstance(id, str):
        return id.strip()
    return f"eval-{id}" if isinstance(id, int) and not isinstance(id, bool) else ""


def statement_ids(texts: Sequence[str]) -> list[str]:
    """Return an id for each statement of a case, made from its words, so that people know it again."""
    ids: list[str] = []
    for text in texts:
        wanted = join_words(text) or "statement"
        ids.append(next(id for id in _number(wanted) if id not in ids))
    return ids


def join_words(text: str, joint: str = "_") -> str:
    """Return the words of a text, cut at a word."""
    joined = joint.join(re.findall(r"\w+", text.lower()))
    if len(joined) <= _ID_LENGTH:
        return joined
    return joined[: _ID_LENGTH + 1].rpartition(joint)[0] or joined[:_ID_LENGTH]


def _number(text: str) -> Iterator[str]:
    yield text
    number = 2
    while True:
        yield f"{text}_{number}"
        number += 1


FILES = ("evals.json", "evals.yaml", "evals.yml", "eval.json")
FOLDERS = ("evals", "evaluations")
"""Folders with cases."""
CASE_LISTS = ("evals", "evaluations", "cases", "tests", "test_cases", "scenarios", "queries")
"""Names of the list of cases; `evals` is skill-creator's."""
TRIGGER_LISTS = {"should_trigger": True, "should_not_trigger": False}
"""Names of two lists of trigger queries, and what each says of the skill."""

PROMPTS = ("prompt", "query", "input", "task", "question", "user_prompt", "user_request", "scenario")
"""Names of a prompt, the first one present counts."""

TRIGGER_KEYS = ("should_trigger", "shouldTrigger", "expected_trigger")
"""Keys of a case that say whether a skill must be loaded, or which."""
SKILL_KEYS = ("expected_skill", "expect_skill")
"""Keys of a case that name the skill that must be loaded; null for none."""
_SAID = {
    **dict.fromkeys(("trigger", "should_trigger", "use"), True),
    **dict.fromkeys(("no_trigger", "not_trigger", "should_not_trigger", "no_use"), False),
}
"""Words in `expected` or `expect` of a trigger query."""
JUDGED = frozenset(
    (*LISTS, "expected_output", "expected_behavior", "expected_commands", "expected_calls", "must_contain")
)
"""Keys by which a document with a prompt is a case."""

Case = tuple[Json, Location]
"""A case and where it is."""


def holds_cases(path: str, value: Json) -> bool:
    """Return whether a document has cases of a skill, or trigger queries."""
    if are_triggers([case for case, _ in find_cases(value)], path):
        return True
    name = posixpath.basename(path)
    if isinstance(value, dict) and any(isinstance(value.get(each), list) for each in FOLDERS):
        # Results have the keys of evals, and no prompts.
        return name in FILES or ("skill_name" in value and hold_prompts(find_cases(value)))
    if is_single_case(value) and path.lower().endswith(".json") and _lies_in_evals(path):
        return True
    # Other names of the list are read in JSON only: in YAML they are AgentV's.
    if not isinstance(value, dict | list) or is_tool_forge_file(path, value):
        return False
    if name == "evals.json" and _lies_in_evals(path):
        return True
    is_named = name in ("evals.json", "eval.json") or (name == "cases.json" and _lies_in_evals(path))
    return is_named and hold_prompts(find_cases(value))


def find_cases(value: Json) -> list[Case]:
    """Return the cases of a document, which may be a single one; none where there is neither list nor case."""
    if isinstance(value, list):
        return [(case, (index,)) for index, case in enumerate(value)]
    if name := name_of_list(value):
        return [(case, (name, index)) for index, case in enumerate(value[name])]
    if not isinstance(value, dict):
        return []
    return [(value, ())] if is_single_case(value) else list(_find_grouped_triggers(value))


def name_of_list(value: Json) -> str:
    """Return the name of the list of cases of an object; empty if it has none."""
    lists = [name for name in CASE_LISTS if isinstance(value, dict) and isinstance(value.get(name), list)]
    # An empty list counts only where no other has cases.
    return next((name for name in lists if value[name]), lists[0] if lists else "")


def are_triggers(cases: Sequence[Json], path: str = "") -> bool:
    """Return whether every case says whether, or which, skill must be loaded; a bare `skill` says it in eval files only."""
    by_skill = names_skills(path)
    return bool(cases) and all(
        isinstance(case, dict) and _is_query(case, by_skill=by_skill) for case in cases
    )


def names_skills(path: str) -> bool:
    """Return whether `skill` of a query in a file means that it must be loaded."""
    return _lies_in_evals(path) or "trigger" in posixpath.basename(path).lower()


def find_trigger(case: Mapping[str, Json], *, by_skill: bool = False) -> tuple[str, Json]:
    """Return the key that says which skill must be loaded, and what it says: true or false, a name, or something wrong.

    The key is empty if there is none. `by_skill` says that `skill` of a case that nothing judges is one.
    """
    for key in TRIGGER_KEYS:
        if key in case:
            said = _said(case[key])
            return key, case[key] if said is None else said
    for key in SKILL_KEYS:
        if key in case:
            return key, False if case[key] is None else case[key]
    for key in ("expected", "expect"):
        said = _said(case.get(key))
        if by_skill and isinstance(case.get(key), bool):
            said = case[key]
        if said is not None:
            return key, said
    is_query = by_skill and isinstance(case.get("skill"), str) and not JUDGED & case.keys()
    return ("skill", case["skill"]) if is_query else ("", None)


def _said(word: Json) -> bool | None:
    return _SAID.get(word.strip().lower().replace("-", "_")) if isinstance(word, str) else None


def _is_query(case: Mapping[str, Json], *, by_skill: bool) -> bool:
    key, _ = find_trigger(case, by_skill=by_skill)
    if key in TRIGGER_KEYS:
        return True
    return bool(key) and hold_prompts([(dict(case), ())]) and not JUDGED & case.keys()


def hold_prompts(cases: Sequence[Case]) -> bool:
    """Return whether a case asks an agent something."""
    texts = (case.get(name) for case, _ in cases if isinstance(case, dict) for name in PROMPTS)
    return any(isinstance(text, str) for text in texts)


def is_single_case(value: Json) -> bool:
    """Return whether a document is one case, as Anthropic's guide to writing skills has it."""
    return isinstance(value, dict) and hold_prompts([(value, ())]) and bool(JUDGED & value.keys())


def _find_grouped_triggers(value: dict[str, Json]) -> Iterator[Case]:
    for name, wanted in TRIGGER_LISTS.items():
        queries = value.get(name)
        for index, query in enumerate(queries if isinstance(queries, list) else []):
            case = {"query": query} if isinstance(query, str) else query
            yield ({**case, "should_trigger": wanted} if isinstance(case, dict) else case), (name, index)


def _lies_in_evals(path: str) -> bool:
    return posixpath.basename(posixpath.dirname(path)) in FOLDERS

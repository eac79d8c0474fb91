"""Find the cases in a skill's eval file, under whichever name authors have given their list."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence

from evaluators.model import Json
from scenarios.formats.agent_skills.case_models import LISTS
from scenarios.formats.positions import Location
from scenarios.formats.tool_forge import matches as is_tool_forge_file

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

"""Find the cases in a skill's eval file, under whichever name authors have given their list."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from evaluators.model import Json
from scenarios.formats.positions import Location
from scenarios.formats.tool_forge import matches as is_tool_forge_file

FILES = ("evals.json", "evals.yaml", "evals.yml")
CASE_LISTS = ("evals", "cases", "tests", "test_cases", "scenarios", "queries")
"""Names of the list of cases; `evals` is skill-creator's."""
TRIGGER_LISTS = {"should_trigger": True, "should_not_trigger": False}
"""Names of two lists of trigger queries, and what each says of the skill."""

PROMPTS = ("prompt", "query", "input", "task", "question", "user_prompt", "user_request")
"""Names of a prompt, the first one present counts."""

Case = tuple[Json, Location]
"""A case and where it is."""


def holds_cases(path: str, value: Json) -> bool:
    """Return whether a document has cases of a skill, or trigger queries."""
    if are_triggers([case for case, _ in find_cases(value)]):
        return True
    name = posixpath.basename(path)
    if isinstance(value, dict) and isinstance(value.get("evals"), list):
        return "skill_name" in value or name in FILES
    if _is_single_case(value) and path.lower().endswith(".json") and _lies_in_evals(path):
        return True
    # Other names of the list are read in JSON only: in YAML they are AgentV's.
    if not isinstance(value, dict | list) or is_tool_forge_file(path, value):
        return False
    if name == "evals.json" and _lies_in_evals(path):
        return True
    is_named = name == "evals.json" or (name == "cases.json" and _lies_in_evals(path))
    return is_named and hold_prompts(find_cases(value))


def find_cases(value: Json) -> list[Case]:
    """Return the cases of a document, which may be a single one; none where there is neither list nor case."""
    if isinstance(value, list):
        return [(case, (index,)) for index, case in enumerate(value)]
    if name := name_of_list(value):
        return [(case, (name, index)) for index, case in enumerate(value[name])]
    if not isinstance(value, dict):
        return []
    return [(value, ())] if _is_single_case(value) else list(_find_grouped_triggers(value))


def name_of_list(value: Json) -> str:
    """Return the name of the list of cases of an object; empty if it has none."""
    lists = [name for name in CASE_LISTS if isinstance(value, dict) and isinstance(value.get(name), list)]
    # An empty list counts only where no other has cases.
    return next((name for name in lists if value[name]), lists[0] if lists else "")


def are_triggers(cases: Sequence[Json]) -> bool:
    """Return whether every case says whether the skill must be loaded."""
    return bool(cases) and all(isinstance(case, dict) and "should_trigger" in case for case in cases)


def hold_prompts(cases: Sequence[Case]) -> bool:
    """Return whether a case asks an agent something."""
    texts = (case.get(name) for case, _ in cases if isinstance(case, dict) for name in PROMPTS)
    return any(isinstance(text, str) for text in texts)


def _is_single_case(value: Json) -> bool:
    """Return whether a document is one case, as Anthropic's guide to writing skills has it."""
    return isinstance(value, dict) and hold_prompts([(value, ())]) and "expected_behavior" in value


def _find_grouped_triggers(value: dict[str, Json]) -> Iterator[Case]:
    for name, wanted in TRIGGER_LISTS.items():
        queries = value.get(name)
        for index, query in enumerate(queries if isinstance(queries, list) else []):
            case = {"query": query} if isinstance(query, str) else query
            yield ({**case, "should_trigger": wanted} if isinstance(case, dict) else case), (name, index)


def _lies_in_evals(path: str) -> bool:
    return posixpath.basename(posixpath.dirname(path)) == "evals"

"""Trigger queries in all spellings: gates on whether a skill is loaded, and which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.bundles import read_path
from scenarios.formats import parse_files
from tests.scenarios.formats.agent_skills_files import PLAIN_SKILL, TWO, case, evals, parse, skill
from tests.scenarios.formats.test_agent_skills_problems import problems_of

CASES = Path(__file__).parents[2] / "files/cases/52"
ASKED = {"id": "a", "prompt": "Note this."}


def loaded(suite: Any) -> list[list[tuple[str, str]]]:
    return [[(gate.type, gate.skill) for gate in spec.criteria.gates] for spec in suite.scenarios]


@pytest.mark.parametrize("name", ["camel", "exptrig", "expected-trigger"])
def test_spellings_of_public_lists_are_read(name: str) -> None:
    bundle = read_path(CASES / name)
    (suite,) = parse_files(bundle.files, name=bundle.name)
    assert suite.name == f"{name}-triggers"
    assert loaded(suite) == [[("skill_loaded", name)], [("skill_not_loaded", name)]]
    assert not suite.lints and not any(spec.criteria.judge for spec in suite.scenarios)


@pytest.mark.parametrize(
    ("says", "type_"),
    [
        ({"should_trigger": True}, "skill_loaded"),
        ({"should_trigger": "notetool"}, "skill_loaded"),
        ({"expected_trigger": "no-trigger"}, "skill_not_loaded"),
        ({"expected": "should_trigger"}, "skill_loaded"),
        ({"expected": "no-trigger"}, "skill_not_loaded"),
        ({"expected": False}, "skill_not_loaded"),
        ({"expect": "use"}, "skill_loaded"),
        ({"expect": "no-use"}, "skill_not_loaded"),
        ({"expected_skill": "notetool"}, "skill_loaded"),
        ({"expected_skill": "desk:notetool"}, "skill_loaded"),
        ({"expected_skill": None}, "skill_not_loaded"),
        ({"expect_skill": "none"}, "skill_not_loaded"),
        ({"skill": "notetool"}, "skill_loaded"),
    ],
)
def test_a_query_says_which_skill_must_load(says: dict[str, Any], type_: str) -> None:
    queries = json.dumps([{**ASKED, **says}])
    suites = parse(skill(evals(case(assertions=TWO)), **{"evals/triggers.json": queries}))
    assert [suite.name for suite in suites] == ["notetool", "notetool-triggers"]
    assert loaded(suites[1]) == [[(type_, "notetool")]]


def plugin(queries: list[dict[str, Any]]) -> dict[str, str]:
    skills = {
        f"skills/{name}/SKILL.md": PLAIN_SKILL.replace("name: notetool", f"name: {name}")
        for name in ("notes", "planner")
    }
    return {**skills, "evals/triggers.json": json.dumps(queries)}


@pytest.mark.parametrize("key", ["expected_skill", "should_trigger"])
def test_queries_of_a_plug_in_name_their_skills(key: str) -> None:
    (suite,) = parse(plugin([{**ASKED, key: "planner"}, {"prompt": "Hi", key: None}]), name="desk")
    assert suite.name == "desk-triggers"
    assert loaded(suite) == [
        [("skill_loaded", "planner")],
        [("skill_not_loaded", "notes"), ("skill_not_loaded", "planner")],
    ]
    laid = {file.path for fixture in suite.fixtures.values() for file in fixture}
    assert {".agents/skills/notes/SKILL.md", ".agents/skills/planner/SKILL.md"} <= laid


def test_a_skill_that_a_query_names_is_laid_in() -> None:
    files = plugin([])
    del files["evals/triggers.json"]
    files["skills/notes/evals/triggers.json"] = json.dumps([{**ASKED, "expected_skill": "planner"}])
    (suite,) = parse(files, name="desk")
    assert loaded(suite) == [[("skill_loaded", "planner")]]
    assert ".agents/skills/planner/SKILL.md" in {file.path for file in suite.fixtures["workspace"]}


def test_another_skill_than_the_uploaded_ones_is_a_hint() -> None:
    queries = json.dumps([{**ASKED, "expected_skill": "spreadsheets"}])
    _, suite = parse(skill(evals(case(assertions=TWO)), **{"evals/triggers.json": queries}))
    assert loaded(suite) == [[("skill_not_loaded", "notetool")]]
    assert [lint.id for lint in suite.lints] == ["format/unknown-skill"]


def test_a_misspelled_skill_is_refused() -> None:
    queries = json.dumps([{**ASKED, "expected_skill": "notetol"}])
    (problem,) = problems_of(skill(evals(case(assertions=TWO)), **{"evals/triggers.json": queries}))
    assert problem.fix == "Did you mean 'notetool'?"


def test_a_case_with_statements_is_no_query() -> None:
    (suite,) = parse(skill(evals(case(assertions=TWO, expected_skill="notetool"))))
    assert (suite.name, loaded(suite)) == ("notetool", [[("skill_loaded", "notetool")]])
    assert suite.scenarios[0].criteria.judge
    (suite,) = parse(skill(evals(case(assertions=TWO, skill="notetool"))))
    assert loaded(suite) == [[]]


def test_data_of_a_skill_that_names_skills_stays_in_it() -> None:
    data = json.dumps([{"query": "x", "skill": "y"}])
    (suite,) = parse(skill(evals(case(assertions=TWO)), **{"data/list.json": data}))
    assert ".agents/skills/notetool/data/list.json" in {file.path for file in suite.fixtures["workspace"]}

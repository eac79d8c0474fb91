"""Places and names of eval files in public repositories, and what is said where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.bundles import read_path
from scenarios.formats import parse_files
from scenarios.formats.parsed import ScenarioFileError
from tests.scenarios.formats.agent_skills_files import PLAIN_SKILL, SKILL, TWO, case, evals, parse, skill
from tests.scenarios.formats.test_agent_skills_problems import problems_of

CASES = Path(__file__).parents[2] / "files/cases"


def read(path: str) -> tuple[Any, ...]:
    bundle = read_path(CASES / path)
    return parse_files(bundle.files, name=bundle.name)


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("53/evaluations", ["milk"]),
        ("53/rooteval", ["eval-1"]),
        ("53/evalskey", ["E1"]),
        ("53/plugin", ["eval-1"]),
    ],
)
def test_cases_are_read_where_authors_keep_them(path: str, keys: list[str]) -> None:
    (suite,) = read(path)
    assert [spec.key for spec in suite.scenarios] == keys
    assert not suite.lints


def test_an_eval_file_beside_the_skill_has_its_gates_there() -> None:
    files = {"SKILL.md": SKILL, "eval.json": evals(case(assertions=TWO)), "gates.yaml": "tool: notetool\n"}
    (suite,) = parse(files)
    assert suite.scenarios[0].criteria.tool.binary == "notetool"
    laid = {file.path for file in suite.fixtures["workspace"]}
    assert laid == {".agents/skills/notetool/SKILL.md"}


def test_a_path_in_a_plug_ins_folder_is_found_there() -> None:
    (suite,) = read("53/plugin")
    assert "evals/fixtures/shop/package.json" in {file.path for file in suite.fixtures["eval-1"]}
    files = {
        "p/.claude-plugin/plugin.json": "{}",
        "p/skills/notetool/SKILL.md": PLAIN_SKILL,
        "p/skills/notetool/evals/evals.json": evals(case(assertions=TWO, files=["shop/a.txt"])),
        "p/shop/a.txt": "x",
    }
    (suite,) = parse(files)
    assert "shop/a.txt" in {file.path for file in suite.fixtures["eval-1"]}


def test_files_with_one_case_each_are_one_suite() -> None:
    files = {
        f"evaluations/{name}.json": json.dumps({"query": f"Add {name}.", "expected_behavior": TWO})
        for name in ("milk", "tea")
    }
    (suite,) = parse({"SKILL.md": PLAIN_SKILL, **files})
    assert (suite.name, [spec.key for spec in suite.scenarios]) == ("notetool", ["milk", "tea"])
    assert [spec.file for spec in suite.scenarios] == ["evaluations/milk.json", "evaluations/tea.json"]


def test_an_id_in_two_files_names_both() -> None:
    one = json.dumps({"id": "a", "query": "Add X.", "expected_behavior": TWO})
    (problem,) = problems_of({"SKILL.md": PLAIN_SKILL, "evals/one.json": one, "evals/two.json": one})
    assert problem.file == "evals/two.json"
    assert problem.what == "Duplicate id 'a', first in line 1 of evals/one.json."


def test_a_skill_without_cases_is_said() -> None:
    (problem,) = problems_of({"SKILL.md": PLAIN_SKILL, "references/a.md": "x"})
    assert (problem.file, problem.what) == ("SKILL.md", "The skill 'notetool' has no cases yet.")
    assert "evals/evals.json" in problem.fix


def test_files_with_prompts_are_named_where_nothing_reads_them() -> None:
    more = json.dumps({"items": [], "cases": [{"prompt": "Add X."}]})
    problems = problems_of({"SKILL.md": PLAIN_SKILL, "testing/prompts.json": more})
    assert [(each.file, each.id) for each in problems] == [
        ("SKILL.md", "format/no-cases"),
        ("testing/prompts.json", "format/unread-file"),
    ]


@pytest.mark.parametrize("files", [{}, {"evals/evals.json": evals(case(assertions=TWO))}])
def test_a_skill_in_lower_case_is_not_found_by_agents(files: dict[str, str]) -> None:
    (problem,) = problems_of({"skill.md": PLAIN_SKILL, **files})
    assert "skill.md" in problem.what and "no agent finds the skill" in problem.what
    assert problem.fix == "Rename it to SKILL.md."


def test_broken_front_matter_says_what_follows() -> None:
    broken = "---\nname: notetool\ndescription: Notes: all of them.\n---\n"
    (suite,) = parse(skill(evals(case(assertions=TWO)), **{"SKILL.md": broken}))
    (lint,) = suite.lints
    assert lint.what.endswith("Agents that read it as YAML don't know the skill.")


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("```sh\nnotetool add\n```", "notetool"),
        ("```bash title=x\n$ notetool add\nAdded the note\n```", "notetool"),
        ("```console\n$ notetool list\nlisting all notes\nlisting all notes\n```", "notetool"),
        ("```sh\nnotetool add \\\n  other thing\n  other thing\n```", "notetool"),
        ("```sh\nif true; then\n  notetool add x\nfi\n```", "notetool"),
        ("```zsh\nfor each in a b; do notetool add x; done\n```", "notetool"),
        ("Run `notetool add` now and `notetool list` then.", ""),
        ("```\nnotetool add X\n```", ""),
        ("```python\nnotetool add\n```", ""),
        ("```text\nthis is prose\n```", ""),
    ],
)
def test_the_suggested_tool_is_a_program_of_a_shells_block(text: str, tool: str) -> None:
    (suite,) = parse({"SKILL.md": f"{PLAIN_SKILL}{text}\n", "evals/evals.json": evals(case(assertions=TWO))})
    hints = [lint.fix for lint in suite.lints if lint.id == "format/tool-not-named"]
    assert [fix.split("'")[1] for fix in hints] == [f"tool: {tool}"] * bool(tool)


def test_a_foreign_file_takes_no_suite_along() -> None:
    bundle = read_path(CASES / "48/repo")
    (suite,) = parse_files(bundle.files, name=bundle.name)
    assert (suite.name, len(suite.scenarios), suite.lints) == ("skill", 1, ())


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("other/a.yaml", "name: a\ntask: x\ngates: [{type: nothing}]\n"),
        ("other/a.eval.yaml", "tests: [{id: a, input: x, criteria: y, assertions: [{type: nothing}]}]\n"),
        ("other/broken.yaml", "a: [\n"),
        ("evals.json", "{"),
    ],
)
def test_errors_of_other_files_are_hints_beside_a_skill(path: str, content: str) -> None:
    files = {f"notetool/{name}": text for name, text in skill(evals(case(assertions=TWO))).items()}
    (suite,) = parse({**files, path: content}, name="repo")
    (lint,) = [lint for lint in suite.lints if lint.file == path]
    assert (lint.id, lint.what.startswith("This file is left out: ")) == ("format/file-left-out", True)


def test_only_the_file_that_names_a_broken_one_is_left_out() -> None:
    files = {f"notetool/{name}": text for name, text in skill(evals(case(assertions=TWO))).items()}
    good = '{"id": "a", "input": "x", "criteria": "y"}\n'
    for folder, cases in (("good", good), ("bad", '{"id": "a", "criteria": "y"}\n')):
        files |= {f"{folder}/EVAL.yaml": "tests: ./cases.jsonl\n", f"{folder}/cases.jsonl": cases}
    first, second = parse(files, name="repo")
    assert [(each.format, len(each.scenarios)) for each in (first, second)] == [
        ("agent_skills", 1),
        ("agentv", 1),
    ]
    assert second.scenarios[0].prompt == "x"
    left_out = [lint for lint in first.lints if lint.id == "format/file-left-out"]
    assert [lint.file for lint in left_out] == ["bad/EVAL.yaml"]
    assert left_out[0].what == "This file is left out: bad/cases.jsonl: The key 'input' is missing."


def test_errors_of_the_skills_own_files_refuse_it() -> None:
    files = skill(evals(case(assertions=TWO)), **{"evals/gates.yaml": "gates: [{type: nothing}]\n"})
    assert [each.id for each in problems_of(files)] == ["format/unknown-gate"]
    with pytest.raises(ScenarioFileError):
        parse({"a.yaml": "name: a\ntask: x\ngates: [{type: nothing}]\n", "b.yaml": "a: ["})

"""Broken skills: each problem with its file, its line and what to do; nothing is stored."""

from __future__ import annotations

import json

import pytest

from scenarios.formats.parsed import ScenarioFileError
from tests.scenarios.formats.agent_skills_files import SKILL, case, evals, parse, skill

LIST = [{"query": "Note this", "should_trigger": True}]


def problems_of(files, **more):
    with pytest.raises(ScenarioFileError) as caught:
        parse(files, **more)
    return [each for each in caught.value.problems if not each.lint]


# fmt: off
BROKEN = {
    "no prompt": (skill(evals({"id": 1, "promt": "Add X", "expected_output": "x"})), ("evals/evals.json", 4, "format/missing-field", "Rename 'promt' to 'prompt'.")),
    "no prompt, and other data under a similar name": (
        skill(evals({"id": 1, "inputs": ["a.csv"], "expected_output": "x"})),
        ("evals/evals.json", 4, "format/missing-field", 'Add "prompt" with what the agent is asked.'),
    ),
    "an empty prompt": (skill(evals(case(prompt="  "))), ("evals/evals.json", 6, "format/empty-value", "Write what the agent is asked.")),
    "statements under another name": (skill(evals(case(expected_outcomes=["It exists.", "It is short."]))), ("evals/evals.json", 7, "format/unknown-list", "as sentences in 'assertions'")),
    "a list of texts as the expected output": (skill(evals(case(expected_output=["It exists."]))), ("evals/evals.json", 7, "format/wrong-type", "a list of statements belongs in 'assertions'")),
    "a statement without text": (skill(evals(case(assertions=["It exists.", {"type": "semantic"}]))), ("evals/evals.json", 9, "format/empty-value", 'an object with "text"')),
    "statements that aren't a list": (skill(evals(case(assertions="It exists."))), ("evals/evals.json", 7, "format/wrong-type", "Write [")),
    "a bad pattern": (skill(evals(case(scorers=[{"type": "regex", "pattern": "a("}]))), ("evals/evals.json", 10, "format/bad-regex", "Fix the pattern.")),
    "a missing file": (
        {
            "skills/notetool/SKILL.md": SKILL,
            "skills/notetool/evals/evals.json": evals(case(files=["data/a.csv"])),
        },
        (
            "skills/notetool/evals/evals.json",
            8,
            "format/missing-file",
            "Looked for 'skills/notetool/evals/data/a.csv', 'skills/notetool/data/a.csv', 'data/a.csv'.",
        ),
    ),
    "a path of another machine": (skill(evals(case(files=["C:\\Users\\me\\evals\\in\\a.csv"])), **{"evals/in/a.csv": "1"}), ("evals/evals.json", 8, "format/file-outside", "Write 'evals/in/a.csv'.")),
    "a path of an older folder": (skill(evals(case(files=["notes/evals/in/a.csv"])), **{"evals/in/a.csv": "1"}), ("evals/evals.json", 8, "format/missing-file", "Write 'evals/in/a.csv'.")),
    "a path that two files end with": (
        skill(evals(case(files=["/tmp/a.csv"])), **{"evals/in/a.csv": "1", "evals/out/a.csv": "2"}),
        ("evals/evals.json", 8, "format/file-outside", "Name a file in the skill's folder"),
    ),
    "an eval file without a list of cases": (
        skill(json.dumps({"skill_name": "notetool", "cases": {"one": case()}})),
        ("evals/evals.json", 1, "format/no-case-list", "Write the cases as a list 'evals'."),
    ),
    "statements as objects under another name": (
        skill(evals(case(criteria=[{"name": "Exists", "description": "The note exists."}]))),
        ("evals/evals.json", 7, "format/unknown-list", "as sentences in 'assertions'"),
    ),
    "a file outside": (skill(evals(case(files=["/etc/passwd"]))), ("evals/evals.json", 8, "format/file-outside", "relative to it")),
    "a folder with the evals": (skill(evals(case(files=["evals"]))), ("evals/evals.json", 8, "format/fixture-holds-scenario", "a folder of their own")),
    "an id of another kind": (skill(evals(case([1], expected_output="x"))), ("evals/evals.json", 5, "format/wrong-type", 'Write "id": 1')),
    "an id twice": (skill(evals(case(1, expected_output="x"), case("eval-1", expected_output="x"))), ("evals/evals.json", 9, "format/duplicate-scenario", "unique id")),
    "a case that isn't an object": (skill(evals("Add X")), ("evals/evals.json", 4, "format/wrong-type", "Write {")),
    "no skill": ({"evals/evals.json": evals(case(expected_output="x"))}, ("evals/evals.json", 1, "format/no-skill", "Looked for SKILL.md, skills/notetool/SKILL.md.")),
    "the file alone": ({"evals.json": evals(case(expected_output="x"))}, ("evals.json", 1, "format/no-skill", "not this file alone")),
    "should_trigger as text": (skill(evals(case(should_trigger="yes"))), ("evals/evals.json", 7, "format/wrong-type", "Write true or false")),
    "queries of a plug-in": (
        {
            "skills/a/SKILL.md": SKILL.replace("notetool", "a"),
            "skills/b/SKILL.md": SKILL.replace("notetool", "b"),
            "evals/eval_queries.json": json.dumps(LIST),
        },
        ("evals/eval_queries.json", 1, "format/which-skill", "Move the file into the skill's own folder"),
    ),
    "a query twice": (
        skill(evals(case(expected_output="x"))) | {"evals/triggers.json": json.dumps(LIST * 2, indent=1)},
        ("evals/triggers.json", 6, "format/duplicate-scenario", "Remove one of them."),
    ),
    "broken JSON": (skill('{"skill_name": "notetool",\n "evals": [}'), ("evals/evals.json", 2, "format/not-json", "Fix the syntax")),
    "gates of an unknown case": (
        skill(evals(case("add-note", expected_output="x")))
        | {"evals/gates.yaml": "cases:\n  add-notes:\n    gates: []\n"},
        ("evals/gates.yaml", 2, "format/unknown-case", "Did you mean 'add-note'?"),
    ),
    "an unknown gate": (
        skill(evals(case(expected_output="x")))
        | {"evals/gates.yaml": "gates:\n  - type: file_exist\n    path: a\n"},
        ("evals/gates.yaml", 2, "format/unknown-gate", "Did you mean 'file_exists'?"),
    ),
    "a workspace that isn't there": (
        skill(evals(case(expected_output="x"))) | {"evals/gates.yaml": "workspace: board\n"},
        ("evals/gates.yaml", 1, "format/missing-fixture", "no folder 'evals/board'"),
    ),
    "a workspace with the evals": (
        skill(evals(case(expected_output="x"))) | {"evals/gates.yaml": "workspace: ..\n"},
        ("evals/gates.yaml", 1, "format/fixture-outside", "Name a folder beside gates.yaml."),
    ),
    "a tool that is a list": (skill(evals(case(expected_output="x"))) | {"evals/gates.yaml": "tool: [a]\n"}, ("evals/gates.yaml", 1, "format/wrong-type", "Write 'tool: NAME'")),
    "a secret": (
        skill(evals(case(expected_output="x")))
        | {"evals/gates.yaml": "tool:\n  binary: a\n  env:\n    API_TOKEN: sk-abcdef1234567890abcdef\n"},
        ("evals/gates.yaml", 4, "format/literal-secret", "set the variable on the worker"),
    ),
}
# fmt: on


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_skill_is_refused_with_one_sentence(name):
    files, (file, line, id, said) = BROKEN[name]
    (problem,) = problems_of(files)
    assert (problem.file, problem.line, problem.id) == (file, line, id)
    assert said in f"{problem.what} {problem.fix}"


def test_all_problems_are_reported_at_once():
    files = skill(evals({"id": 1}, case(2, assertions=[""], files=["a.csv"]), case(2, expected_output="x")))
    files["evals/gates.yaml"] = "gates:\n  - type: nothing\n"
    assert sorted(each.id for each in problems_of(files)) == [
        "format/empty-value",
        "format/missing-field",
        "format/missing-file",
        "format/unknown-gate",
    ]


@pytest.mark.parametrize(
    ("front", "id", "line"),
    [
        ("# Notes\n", "format/skill-description", 1),
        ("---\nname: notetool\n---\n", "format/skill-description", 1),
        ("---\nname: Note Tool\ndescription: Notes.\n---\n", "format/skill-name", 2),
        ("---\nname: notetool\ndescription: " + "x" * 1025 + "\n---\n", "format/skill-description", 3),
    ],
)
def test_what_keeps_agents_from_a_skill_is_a_hint(front, id, line):
    (suite,) = parse(skill(evals(case(expected_output="x"))) | {"SKILL.md": front})
    assert (id, "SKILL.md", line) in {(lint.id, lint.file, lint.line) for lint in suite.lints}


@pytest.mark.parametrize(
    ("files", "id"),
    [
        (skill(evals(case(expected_output="x"), skill_name="note-tool")), "format/skill-name"),
        (skill(evals({"prompt": "Add X", "expected_output": "x"})), "format/no-id"),
        (skill(evals(case(expected_ouput="x", assertions=["y"]))), "format/unknown-key"),
        (skill(evals(case())), "format/nothing-to-judge"),
        (skill(evals()), "format/no-cases"),
        ({"a/SKILL.md": SKILL, "a/evals/evals.json": evals(case(expected_output="x"))}, "format/skill-name"),
    ],
)
def test_what_is_probably_a_mistake_is_a_hint(files, id):
    (suite,) = parse(files)
    assert id in {lint.id for lint in suite.lints}

"""Which of a bundle's files judge, by what scripts, targets and cases name."""

from __future__ import annotations

import pytest

from evaluators.grading.judges.rubric import Criterion, RubricCriteria
from runs.engine.workspace.judging_files import (
    Command,
    JudgingFiles,
    commands_of_target,
    judging_files,
    named_by_judging,
    rubric_files,
)
from scenarios.formats.parsed import FixtureFile


def files(*paths: str, **contents: str) -> tuple[FixtureFile, ...]:
    given = dict.fromkeys(paths, "") | {
        path.replace("__", "/").replace("_", "."): text for path, text in contents.items()
    }
    return tuple(FixtureFile(path, text.encode()) for path, text in sorted(given.items()))


def found(
    laid: tuple[FixtureFile, ...],
    script: str = "",
    target: str = "",
    *,
    cwd: str = "e",
    named: tuple[str, ...] = (),
    given: tuple[str, ...] = (),
) -> list[str]:
    scripts = frozenset({Command(script, cwd)} if script else ())
    judging = JudgingFiles(frozenset(named), scripts)
    commands = (Command(target, "e"),) if target else ()
    return sorted(judging_files(laid, judging, folder="e", attachments=given, target=commands))


@pytest.mark.parametrize(
    ("script", "cwd", "expected"),
    [
        ("python3 j/a.py", "e", ["e/j/a.py", "e/j/gold.txt"]),
        ("python3 a.py", "e/j", ["e/j/a.py", "e/j/gold.txt"]),
        ("cd j && python3 -c 'import a'", "e", ["e/j/a.py", "e/j/gold.txt"]),
        ("python3 ../top.py", "e", ["top.py"]),
        ("node x.js --gold=j/gold.txt", "e", ["e/j/gold.txt", "e/x.js"]),
        ("sh -c 'node x.js'", "e", ["e/x.js"]),
        ("node x.js; true", "e", ["e/x.js"]),
        ("node 'x.js", "e", []),
        ("true", "e", []),
        ("true", "", []),
        ("python3 .", "e", []),
    ],
)
def test_scripts_are_found_with_their_folders(script, cwd, expected):
    laid = files("e/j/a.py", "e/j/gold.txt", "e/x.js", "e/data.csv", "top.py")
    assert found(laid, script, cwd=cwd) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open('gold.txt')", ["e/gold.txt", "e/x.py"]),
        ("open('e/gold.txt')", ["e/gold.txt", "e/x.py"]),
        ("import json, lib", ["e/lib.py", "e/more.py", "e/x.py"]),
        ("from lib import x", ["e/lib.py", "e/more.py", "e/x.py"]),
        ("from . import lib", ["e/lib.py", "e/more.py", "e/x.py"]),
        ("# lib and gold", ["e/x.py"]),
        ("open('elsewhere/gold.txt')", ["e/x.py"]),
    ],
)
def test_what_a_script_names_is_found_and_what_that_names(text, expected):
    laid = files(
        "e/agent", "e/data.csv", e__x_py=text, e__lib_py="import more", e__more_py="", e__gold_txt="x"
    )
    assert found(laid, "python3 x.py") == expected


def test_what_the_target_names_stays_and_what_that_names():
    laid = files(
        "e/s/data.csv", e__s__agent_py="import lib", e__s__lib_py="", e__s__judge_py="import lib; 'agent.py'"
    )
    assert found(laid, "python3 s/judge.py") == ["e/s/agent.py", "e/s/data.csv", "e/s/judge.py", "e/s/lib.py"]
    assert found(laid, "python3 s/judge.py", "python3 s/agent.py {PROMPT}") == ["e/s/judge.py"]


def test_a_targets_text_does_not_keep_what_judging_names_itself():
    laid = files(e__agent_py="'judge.py' 'answer.txt'", e__judge_py="", e__answer_txt="")
    shown = found(laid, "python3 judge.py", "python3 agent.py", named=("e/answer.txt", "gone.txt"))
    assert shown == ["e/answer.txt", "e/judge.py"]


def test_a_program_that_is_target_and_judge_stays():
    assert found(files("e/both.py"), "python3 both.py --judge", "python3 both.py") == []


def test_attachments_and_guidelines_stay():
    laid = files("e/j/a.py", "e/j/question.txt")
    assert found(laid, "python3 j/a.py", given=("e/j/question.txt",)) == ["e/j/a.py"]


def test_everything_that_evaluators_name_is_found():
    evaluators = [
        {"type": "code_judge", "script": "sh a.sh", "cwd": "e"},
        {
            "type": "composite",
            "evaluators": [{"type": "llm_judge", "prompt": "x", "prompt_file": "p.md"}],
            "aggregator": {"type": "code_judge", "path": "sh b.sh"},
        },
    ]
    messages = [{"role": "assistant", "content": [{"type": "file", "value": "f", "path": "e/f.txt"}]}]
    named, scripts = named_by_judging([evaluators, messages, None])
    assert named == {"p.md", "e/f.txt"}
    assert scripts == {Command("sh a.sh", "e"), Command("sh b.sh", "")}


def test_a_targets_commands_start_in_its_own_folder_too():
    definition = {"command_template": "sh run.sh", "cwd": "in", "args": ["--x"], "healthcheck": {"cwd": "h"}}
    assert {
        Command("sh run.sh", "e"),
        Command("sh run.sh", "e/in"),
        Command("--x", "e/in"),
        Command("h", "e"),
    } <= set(commands_of_target(definition, "e"))


@pytest.mark.parametrize(
    ("path", "text", "is_one"),
    [
        ("r.yaml", "criteria: [{id: a}, {id: b c}]", True),
        ("r.json", '{"criteria": [{"id": "a"}, {"id": "b c"}]}', True),
        ("r.txt", "criteria: [{id: a}, {id: b c}]", False),
        ("r.yaml", "criteria: [{id: a}]", False),
        ("r.yaml", "criteria: [a, b c]", False),
        ("r.yaml", "criteria: {id: a}", False),
        ("r.yaml", "criteria: [", False),
    ],
)
def test_a_rubric_is_known_by_its_criteria(path, text, is_one):
    rubric = RubricCriteria(criteria=(Criterion(id="a", weight=1), Criterion(id="b c", weight=1)))
    assert rubric_files([FixtureFile(path, text.encode())], [rubric]) == (
        frozenset({path}) if is_one else frozenset()
    )

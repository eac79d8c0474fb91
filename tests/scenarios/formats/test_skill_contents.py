"""Files of a skill's folder that agents don't get, and files that contain assertions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scenarios.formats.agent_skills.skill_folders import find_left_out, name_left_out
from scenarios.guidance import SKILLS, named_guidelines, suite_guidance
from tests.scenarios.formats.agent_skills_files import SKILL, case, evals, parse, skill

TRIGGERS = json.dumps([{"query": "Note this", "should_trigger": True}])
LEFT_OUT = {
    "evals/evals.json": "evals/",
    "evals/files/list.txt": "evals/",
    "scripts/evals/run.py": "scripts/evals/",
    "evaluations/one.md": "evaluations/",
    "notes-workspace/iteration-1/eval-1/with_skill/outputs/commands.sh": "notes-workspace/",
    "notes-workspace/skill-snapshot/SKILL.md": "notes-workspace/",
    "iteration-2/summary.md": "iteration-2/",
    "old/iteration-12/x": "old/",
    "results/eval_metadata.json": "results/eval_metadata.json",
    "results/grading.json": "results/grading.json",
    "benchmark.json": "benchmark.json",
    "benchmark.md": "benchmark.md",
    "timing.json": "timing.json",
    "feedback.json": "feedback.json",
    "eval.json": "eval.json",
    "references/queries.json": "references/queries.json",
    "trigger-eval.json": "trigger-eval.json",
    "checks/evals.yaml": "checks/evals.yaml",
    "checks/gates.yaml": "checks/gates.yaml",
    ".git/HEAD": ".git/",
}
STAYS = (
    *("SKILL.md", "LICENSE", "package-lock.json", "pnpm-lock.yaml", "rules/a.md", "agents/b.md", "src/c.py"),
    *("scripts/run.sh", "references/eval.json", "iteration-notes/a.md", "evals.md", "rules/gates.yaml"),
)
CONTENTS = {
    "references/queries.json": TRIGGERS,
    "trigger-eval.json": json.dumps({"should_trigger": ["Note this"], "should_not_trigger": ["Draw"]}),
    "checks/evals.yaml": "skill_name: notes\nevals: [{id: 1, prompt: Add a note.}]\n",
    "package-lock.json": "{}",
    "pnpm-lock.yaml": "packages: {expect: 1}\n",
}
OF_AUTHORS = (".github/workflows/ci.yml", ".planning/plan.md", "tests/test_run.py")


def files_of(*paths: str) -> dict[str, bytes]:
    return {path: CONTENTS.get(path, SKILL if path == "SKILL.md" else "x").encode() for path in paths}


def test_what_stays_out_of_a_skill() -> None:
    files = files_of(*LEFT_OUT, *STAYS, *OF_AUTHORS, "docs/guide.md")
    assert find_left_out(files) == LEFT_OUT
    assert find_left_out(files, is_repository=True) == LEFT_OUT | {
        path: f"{path.split('/')[0]}/" for path in (*OF_AUTHORS, "docs/guide.md")
    }


def test_documents_that_the_skill_names_stay() -> None:
    files = files_of("SKILL.md", "docs/guide.md", "docs/more.md")
    files["SKILL.md"] += b"Read [the guide](docs/guide.md).\n"
    assert find_left_out(files, is_repository=True) == {}
    # The name of the folder alone names no file.
    files["SKILL.md"] = SKILL.encode() + b"See docs/.\n"
    assert set(find_left_out(files, is_repository=True).values()) == {"docs/"}


@pytest.mark.parametrize("content", ["{", "[" * 100_000, '"\\ud800"', "\xff", "null", "[1]", "a: 1\n b: ["])
def test_files_that_cannot_be_read_stay(content: str) -> None:
    files = {
        f"a.{suffix}": content.encode("latin-1") + b"# skill" * (suffix != "json")
        for suffix in ("json", "yaml")
    }
    assert find_left_out(files) == {}


def test_what_is_left_out_is_named_by_folders() -> None:
    assert name_left_out(
        find_left_out(files_of("SKILL.md", "evals/a", "evals/b/c", "timing.json", "x/evals/d"))
    ) == ["evals/ (2 files)", "timing.json", "x/evals/ (1 file)"]


def lay(files: dict[str, Any]) -> list[str]:
    (suite,) = parse(files)
    return [file.path for file in suite_guidance(suite, named_guidelines(suite))]


def test_only_at_a_repositorys_root_its_authors_files_stay_out() -> None:
    files = skill(evals(case(expected_output="x")), **dict.fromkeys(OF_AUTHORS, "x"))
    assert lay(files) == [f"{SKILLS}/notetool/SKILL.md"]
    within = {f"skills/notetool/{path}": content for path, content in files.items()}
    assert lay(within) == sorted(f"{SKILLS}/notetool/{path}" for path in ("SKILL.md", *OF_AUTHORS))


def test_copies_of_the_skill_in_a_workspace_have_no_evals() -> None:
    board = {
        f"evals/board/.claude/skills/notetool/{path}": "{}" for path in ("evaluations/a.md", "grading.json")
    }
    board |= {"evals/board/.claude/skills/notetool/SKILL.md": SKILL, "evals/board/evals/mine.txt": "x"}
    (suite,) = parse(
        skill(
            evals(case(expected_output="x")),
            **board,
            **{"evals/gates.yaml": "tool: notetool\nworkspace: board\n"},
        )
    )
    assert [file.path for file in suite.fixtures["workspace"]] == [
        f"{SKILLS}/notetool/SKILL.md",
        ".claude/skills/notetool/SKILL.md",
        "evals/mine.txt",
    ]


def test_a_snapshot_of_the_skill_in_a_workspace_is_no_skill() -> None:
    snapshot = SKILL.replace("Takes notes", "Took notes")
    files = skill(
        evals(case(expected_output="x")), **{"old/iteration-1/a": "", "old/skill-snapshot/SKILL.md": snapshot}
    )
    (suite,) = parse(files)
    assert lay(files) == [f"{SKILLS}/notetool/SKILL.md"]
    assert suite.left_out == ("evals/ (1 file)", "old/ (2 files)")


def test_a_skill_below_a_folder_with_iterations_is_found() -> None:
    files = {
        f"shop/skills/notetool/{path}": text for path, text in skill(evals(case(expected_output="x"))).items()
    }
    assert lay({**files, "shop/iteration-1/a": ""}) == [f"{SKILLS}/notetool/SKILL.md"]


LONG = 'The list "shop" has a note titled Milk, and nothing else was changed.'


def findings(cases: list[dict[str, Any]], **files: str) -> list[tuple[str, int, str]]:
    suites = parse(skill(evals(*cases), **files))
    return [
        (lint.file, lint.line, lint.what)
        for suite in suites
        for lint in suite.lints
        if lint.id == "format/answer-in-skill"
    ]


def test_a_file_with_an_assertion_word_for_word_is_named() -> None:
    wrapped = LONG.replace("Milk, and", "Milk,\n  and")
    cases = [
        case(1, assertions=[LONG, "Short."]),
        case(2, expected_output=f"{LONG} So it is.", assertions=["A."]),
    ]
    found = findings(
        cases,
        **{
            "references/a.md": f"# Notes\n\n{wrapped} So it is.\n",
            "rules/b.json": json.dumps({"text": LONG}),
            "agents/c.md": LONG.replace("Milk", "Tea"),
            "SKILL.md": f"{SKILL}{LONG}\n",
            "logo.png": f"{LONG}\0",
            "evals/more.md": LONG,
        },
    )
    assert found == [
        (
            "references/a.md",
            3,
            "The file holds the assertion of case 'eval-1' word for word, and 1 more text like it: "
            "an agent with the skill can read it.",
        ),
        (
            "rules/b.json",
            1,
            "The file holds the assertion of case 'eval-1' word for word: an agent with the skill can read it.",
        ),
    ]


@pytest.mark.parametrize(("length", "count"), [(39, 0), (40, 1)])
def test_a_short_answer_is_no_finding(length: int, count: int) -> None:
    text = "a note " * 5 + "m" * (length - 35)
    found = findings([case(expected_output=text)], **{"references/a.md": f"> {text}."})
    assert [what for *_, what in found if "expected output of case 'eval-1'" in what] == [
        what for *_, what in found
    ]
    assert len(found) == count

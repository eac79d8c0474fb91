"""What a skill's case is checked by without a judge becomes gates; sentences stay statements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenarios.bundles import read_path
from scenarios.formats import parse_files
from tests.scenarios.formats.agent_skills_files import case, evals, parse, skill
from tests.scenarios.formats.test_agent_skills_problems import problems_of

CASES = Path(__file__).parents[2] / "files/cases"


def folder(path: str) -> Any:
    bundle = read_path(CASES / path)
    (suite,) = parse_files(bundle.files, name=bundle.name)
    return suite


def gates_of(spec: Any) -> list[dict[str, Any]]:
    """Return the gates without what is as it always is."""
    return [
        {key: value for key, value in gate.model_dump().items() if key != "timeout_seconds" and value}
        for gate in spec.criteria.gates
    ]


def statements_of(spec: Any) -> list[str]:
    judge = spec.criteria.judge
    return [each.description for each in judge.rubric.criteria] if judge else []


def only(**more: Any) -> Any:
    (suite,) = parse(skill(evals(case(**more))))
    return suite.scenarios[0], suite.lints


def test_commands_that_authors_expect_are_gates() -> None:
    first, second = folder("51/expected-calls").scenarios
    assert gates_of(first) == [
        {
            "type": "command_ran",
            "words": ["notes", "add"],
            "flags": ["--title Milk"],
            "without_flags": ["--force"],
        }
    ]
    assert gates_of(second) == [{"type": "command_ran", "words": ["notes", "list"]}]
    assert (statements_of(first), statements_of(second)) == ([], ["The notes are listed."])


def test_files_with_one_case_each_join_the_suite_of_their_folder() -> None:
    suite = folder("51/ignored-file")
    assert [spec.key for spec in suite.scenarios] == ["eval-1", "backup"]
    backup = suite.scenarios[1]
    assert backup.prompt == "Back up all notes, delete one, restore the backup."
    assert statements_of(backup) == ["A backup exists", "The deleted note is back"]
    assert [gate["words"] for gate in gates_of(backup)] == [
        ["notes", "backup"],
        ["notes", "restore", "b.json"],
    ]


def test_texts_of_the_answer_are_gates() -> None:
    suite = folder("51/must-contain")
    assert gates_of(suite.scenarios[0]) == [
        {"type": "transcript_matches", "pattern": "Milk", "where": "answer", "name": "contains 'Milk'"},
        {"type": "answer_lacks", "substring": "sorry"},
    ]
    assert not suite.lints


@pytest.mark.parametrize(
    ("written", "gate"),
    [
        ({"type": "contains", "value": "a.b"}, {"type": "transcript_matches", "pattern": r"a\.b", "where": "answer", "name": "contains 'a.b'"}),
        ({"type": "content_contains", "value": "Milk", "description": "It names Milk."}, {"type": "transcript_matches", "pattern": "Milk", "where": "answer", "name": "It names Milk."}),
        ({"type": "content-contains", "value": 3, "path": "n.txt"}, {"type": "file_contains", "path": "n.txt", "substring": "3"}),
        ({"type": "not_contains", "value": "Tea"}, {"type": "answer_lacks", "substring": "Tea"}),
        ({"type": "does_not_contain", "value": "Tea"}, {"type": "answer_lacks", "substring": "Tea"}),
        ({"type": "not_contains", "value": "Tea", "path": "n.txt"}, {"type": "file_matches", "path": "n.txt", "pattern": r"(?s)\A(?!.*Tea)"}),
        ({"type": "regex", "value": "M.lk"}, {"type": "transcript_matches", "pattern": "M.lk", "where": "answer"}),
        ({"type": "regex", "pattern": "M.lk", "file": "n.txt"}, {"type": "file_matches", "path": "n.txt", "pattern": "M.lk"}),
        ({"type": "file_exists", "path": "n.txt"}, {"type": "file_exists", "path": "n.txt"}),
        ({"type": "file_exists", "value": "n.txt"}, {"type": "file_exists", "path": "n.txt"}),
    ],
)  # fmt: skip
def test_what_has_a_value_a_pattern_or_a_path_is_a_gate(written: Any, gate: Any) -> None:
    spec, lints = only(assertions=[written])
    assert (gates_of(spec), statements_of(spec)) == ([gate], [])
    assert {lint.id for lint in lints} == {"format/tool-not-named"}


def test_several_values_are_several_gates() -> None:
    spec, _ = only(assertions=[{"type": "contains", "value": ["Milk", "Tea"]}])
    assert [gate["pattern"] for gate in gates_of(spec)] == ["Milk", "Tea"]


@pytest.mark.parametrize("type_", ["contains", "tool_use", "expected_calls", "semantic"])
def test_what_has_only_a_sentence_is_a_statement(type_: str) -> None:
    spec, _ = only(assertions=[{"type": type_, "text": "The note exists."}])
    assert (statements_of(spec), gates_of(spec)) == (["The note exists."], [])


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"type": "tool_use", "tool": "WebSearch"}, "names a tool of one agent's own, so it is not run."),
        ({"type": "max_length", "value": 80}, "Nothing reads a check of type 'max_length'."),
    ],
)
def test_other_checks_are_named(written: Any, said: str) -> None:
    spec, lints = only(assertions=[written, "The note exists."])
    assert (statements_of(spec), gates_of(spec)) == (["The note exists."], [])
    (lint,) = [lint for lint in lints if lint.id == "format/unread-check"]
    assert lint.what.endswith(said)


@pytest.mark.parametrize(
    ("line", "words", "flags"),
    [
        ("notes add --title 'Buy milk' --json", ["notes", "add"], ["--title 'Buy milk'", "--json"]),
        ("notes --json list", ["notes", "list"], ["--json"]),
        ("notes show <id> --format={{x}} ...", ["notes", "show"], ["--format"]),
        ("./bin/notes add", ["notes", "add"], None),
        ("cd board && notes add | head -1", ["notes", "add"], None),
        ("git status", ["git", "status"], None),
    ],
)
def test_a_line_is_its_words_and_flags(line: str, words: list[str], flags: list[str] | None) -> None:
    spec, _ = only(expected_commands=[line])
    (gate,) = gates_of(spec)
    assert (gate["words"], gate.get("flags")) == (words, flags)


def test_commands_of_a_typed_check_are_gates() -> None:
    spec, _ = only(assertions=[{"type": "expected_commands", "value": ["notes list", "notes add -t Milk"]}])
    assert [gate["words"] for gate in gates_of(spec)] == [["notes", "list"], ["notes", "add"]]
    spec, _ = only(assertions=[{"type": "expected_calls", "command": "notes add", "forbidden_flags": ["-f"]}])
    assert [gate["without_flags"] for gate in gates_of(spec)] == [["-f"]]


def test_a_sentence_about_a_command_is_a_statement() -> None:
    spec, _ = only(expected_commands=["Run the list command before adding."])
    assert (statements_of(spec), gates_of(spec)) == (["Run the list command before adding."], [])


def test_what_must_not_hold_is_a_statement_about_it() -> None:
    (spec,) = folder("53/evalskey").scenarios
    assert statements_of(spec) == ["A note exists", "This must not be the case: Deleting another note."]


@pytest.mark.parametrize(
    ("more", "id"),
    [
        ({"assertions": [{"type": "contains", "value": {"a": 1}}]}, "format/wrong-type"),
        ({"assertions": [{"type": "regex", "value": "a("}]}, "format/bad-regex"),
    ],
)
def test_a_broken_check_is_refused(more: dict[str, Any], id: str) -> None:
    (problem,) = problems_of(skill(evals(case(**more))))
    assert problem.id == id


@pytest.mark.parametrize(
    "more", [{"must_contain": [{"a": 1}]}, {"expected_calls": [{"tool": "add", "arguments": {}}]}]
)
def test_other_values_are_named_with_their_key(more: dict[str, Any]) -> None:
    spec, lints = only(assertions=["The note exists."], **more)
    assert gates_of(spec) == []
    (lint,) = [lint for lint in lints if lint.id == "format/unread-check"]
    assert lint.what == f"Nothing reads this value of '{next(iter(more))}'."


def test_success_criteria_may_be_one_text_or_anothers_settings() -> None:
    assert statements_of(only(success_criteria="The note exists.")[0]) == ["The note exists."]
    spec, lints = only(assertions=["The note exists."], success_criteria={"threshold": 0.8})
    assert statements_of(spec) == ["The note exists."]
    assert "Nothing reads 'success_criteria'." in {lint.what for lint in lints}

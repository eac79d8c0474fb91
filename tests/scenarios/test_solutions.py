"""Reference solutions beside a suite: read, stored, and kept away from agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.bundles import read_path
from scenarios.formats import parse_files
from scenarios.imports import import_files
from scenarios.storing import suite_hash
from tests.builders import make_project
from tests.greeting import EXISTS, greeting

SUITE = greeting(EXISTS).replace("template_folder: repo\n", "").encode()
SOLUTION = b"echo hello > out.txt\r\n"
AGENTV = b"""
evalcases:
  - id: hello
    expected_outcome: Greets.
    input_messages: [{role: user, content: Greet.}]
    expected_messages: [{role: assistant, content: Hello.}]
    execution:
      evaluators: [{name: looks, type: tool_trajectory, mode: in_order, expected: [{tool: look}]}]
"""


@pytest.mark.parametrize(
    ("file", "solution"),
    [
        ("greet.yaml", "solutions/greet.sh"),
        ("deep/greet.yaml", "solutions/greet.sh"),
        ("deep/greet.yaml", "deep/solutions/greet.sh"),
    ],
)
def test_a_solution_is_beside_its_file_or_at_the_root(file, solution):
    (suite,) = parse_files({file: SUITE, solution: SOLUTION}, name="greet")
    assert suite.solutions == {"greet": "echo hello > out.txt\n"}


def test_a_solution_changes_no_hash():
    (bare,) = parse_files({"greet.yaml": SUITE}, name="greet")
    (solved,) = parse_files({"greet.yaml": SUITE, "solutions/greet.sh": SOLUTION}, name="greet")
    assert suite_hash(bare) == suite_hash(solved)


def test_a_solution_is_no_file_of_an_agentv_bundle():
    files = {"greet.eval.yaml": AGENTV, "solutions/hello.sh": SOLUTION, "data.csv": b"a,b"}
    (suite,) = parse_files(files, name="greet")
    assert suite.solutions == {"hello": "echo hello > out.txt\n"}
    assert not any("solutions" in file.path for each in suite.fixtures.values() for file in each)


def test_scripts_in_a_fixture_called_solutions_stay_there():
    text = b"template_folder: solutions\n" + SUITE
    (suite,) = parse_files({"greet.yaml": text, "solutions/greet.sh": SOLUTION}, name="greet")
    assert suite.solutions == {}
    assert [file.path for file in suite.fixtures["solutions"]] == ["greet.sh"]


def test_a_solution_without_a_scenario_is_a_hint():
    (suite,) = parse_files({"greet.yaml": SUITE, "solutions/gret.sh": SOLUTION}, name="greet")
    (lint,) = suite.lints
    assert (lint.file, lint.id, lint.lint) == ("solutions/gret.sh", "solution/no-scenario", True)
    assert "No scenario is called 'gret'" in lint.what


def test_a_single_file_is_read_with_its_solution(tmp_path: Path):
    (tmp_path / "greet.yaml").write_bytes(SUITE)
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "greet.sh").write_bytes(SOLUTION)
    (tmp_path / "solutions" / "notes.md").write_text("Not a script.")
    assert set(read_path(tmp_path / "greet.yaml").files) == {"greet.yaml", "solutions/greet.sh"}


@pytest.mark.django_db
def test_the_last_upload_decides_the_stored_solutions(tmp_path: Path):
    project = make_project()
    (tmp_path / "greet.yaml").write_bytes(SUITE)
    (tmp_path / "solutions").mkdir()
    script = tmp_path / "solutions" / "greet.sh"
    versions = []
    for content in ("exit 1\n", "exit 0\n"):
        script.write_text(content)
        (imported,) = import_files(read_path(tmp_path), project=project, by=None)
        assert imported.version.solutions == {"greet": content}
        versions.append(imported.version.pk)
    script.unlink()
    (imported,) = import_files(read_path(tmp_path), project=project, by=None)
    assert imported.version.solutions == {}
    assert {imported.version.pk} == set(versions)

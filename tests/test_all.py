"""What `make test` runs in which pass, and how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.all import ROOT, find_tests, names_files, repeated, worst
from tests.slow import marked_files

FILE = """
import os
import pytest

def test_passes():
    with open({ran!r}, "a") as file:
        file.write(os.environ.get("DATABASE_URL", "sqlite").partition(":")[0] + "\\n")

@pytest.mark.skip(reason="There is no moon.")
def test_skipped(): pass
"""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], False),
        (["-k", "shell", "-x"], False),
        (["tests/web"], True),
        (["-x", "tests/evaluators/tool_use/test_shell.py::test_it_takes_any_line"], True),
    ],
)
def test_it_knows_where_a_file_is_named(arguments: list[str], named: bool) -> None:
    assert names_files(arguments) is named


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("runs/compare", ["tests/runs/compare", "tests/web/compare", "tests/api/compare"]),
        ("runs/compare/line.py", ["tests/runs/compare", "tests/web/compare", "tests/api/compare"]),
        ("runs/engine/mcp/", ["tests/runs/engine/mcp", "tests/api/engine"]),
        ("evaluators/grading/gates/file_gates.py", ["tests/evaluators/grading/gates"]),
        ("scenarios/guidance.py", ["tests/scenarios"]),
        ("tests/web", ["tests/web"]),
        ("-x", ["-x"]),
        ("runs/nothing", ["runs/nothing"]),
    ],
)
def test_a_folder_of_the_source_stands_for_its_tests(word: str, expected: list[str]) -> None:
    assert find_tests(word) == expected


@pytest.mark.parametrize(
    ("codes", "expected"),
    [([0, 0, 0], 0), ([0, 1, 0], 1), ([5, 0, 5], 0), ([5, 1, 0], 1), ([5, 5, 5], 5), ([0, 2, 137], 137)],
)
def test_it_ends_with_the_worst_code_of_a_pass(codes: list[int], expected: int) -> None:
    assert worst(codes) == expected


def test_it_finds_ids_that_tests_share() -> None:
    assert repeated(["a.py::one", "a.py::two", "a.py::one"]) == ["a.py::one"]


def _all(*arguments: str, module: str = "tests.all", **env: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "EVALHUB_"))}
    argv = [sys.executable, "-m", module, *arguments]
    return subprocess.run(argv, cwd=ROOT, env={**clean, **env}, capture_output=True, text=True, check=False)


def test_what_takes_longest_starts_first(request: pytest.FixtureRequest) -> None:
    later = [item.get_closest_marker("starts_first") is None for item in request.session.items]
    assert later == sorted(later)


@pytest.mark.starts_first
def test_a_pass_lists_what_it_skipped_and_why(tmp_path: Path) -> None:
    file = tmp_path / "test_two.py"
    file.write_text(FILE.format(ran=str(tmp_path / "ran")))
    done = _all(str(file), "-c", "pyproject.toml", "--rootdir", ".", "-n0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "There is no moon." in done.stdout
    assert " 1 passed, 1 skipped in " in done.stdout
    assert "Pure parts" not in done.stdout
    # Nothing in it touches the database.
    assert (tmp_path / "ran").read_text() == "sqlite\n"


def test_a_pass_names_missing_servers() -> None:
    found = _all("--version", PATH="/nowhere")
    assert "SKIPPED the whole pass: There is no " in found.stdout
    assert found.returncode == 0
    assert _all("--version", PATH="/nowhere", EVALHUB_TEST_REQUIRE="redis").returncode == 1


def test_slow_tests_run_only_what_the_first_argument_names() -> None:
    found = _all("postgresql", "--version", module="tests.slow", PATH="/nowhere")
    assert "SKIPPED the whole pass: There is no " in found.stdout
    assert "SQLite" not in found.stdout
    found = _all("sqlite", "--version", module="tests.slow", PATH="/nowhere")
    assert "SQLite" in found.stdout
    assert "PostgreSQL" not in found.stdout
    for name in ("simulations", "sample"):
        found = _all(name, "--version", module="tests.slow", PATH="/nowhere")
        assert "*** Simulations" in found.stdout
        assert "SQLite" not in found.stdout


@pytest.mark.parametrize(
    ("mark", "where"),
    [
        ("slow", marked_files("slow")),
        ("simulation", marked_files("simulation")),
        ("fault", ["tests/faults/", "tests/docker/"]),
    ],
)
def test_marked_tests_are_where_their_command_looks(mark: str, where: list[str]) -> None:
    marked = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(rf"mark\.{mark}\b", path.read_text(encoding="utf-8"))
    ]
    assert marked
    assert [path for path in marked if not path.startswith(tuple(where))] == []

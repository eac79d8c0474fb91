"""What `make test` runs in which pass, and how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.all import (
    DIFFERING,
    ROOT,
    WAITING,
    find_repeated,
    find_tests,
    find_worst,
    names_files,
    run_on_servers,
)
from tests.call_times import JOURNEYS, MOST_JOURNEYS, TURNS, find_long_calls
from tests.parts import PARTS, find_changed_tests, order_sample

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
        ("scenarios/guidance.py", ["tests/scenarios", "tests/web/suites", "tests/api/suites"]),
        ("scenarios/formats", ["tests/scenarios/formats"]),
        ("static/js/app.js", ["tests/browser"]),
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
    assert find_worst(codes) == expected


def test_it_finds_ids_that_tests_share() -> None:
    assert find_repeated(["a.py::one", "a.py::two", "a.py::one"]) == ["a.py::one"]


def _all(*arguments: str, module: str = "tests.all", **env: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "EVALHUB_"))}
    argv = [sys.executable, "-m", module, *arguments]
    return subprocess.run(argv, cwd=ROOT, env={**clean, **env}, capture_output=True, text=True, check=False)


def test_what_takes_longest_starts_first(request: pytest.FixtureRequest) -> None:
    later = [item.get_closest_marker("starts_first") is None for item in request.session.items]
    assert later == sorted(later)


@pytest.mark.slow
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


@pytest.mark.parametrize(("required", "code"), [("", 0), ("redis", 1)])
def test_a_pass_names_missing_servers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], required: str, code: int
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("EVALHUB_TEST_REQUIRE", required)
    assert run_on_servers("A pass", []) == code
    assert "SKIPPED the whole pass: There is no " in capsys.readouterr().out


@pytest.mark.slow
def test_a_part_runs_alone() -> None:
    found = _all("postgresql", "--version", module="tests.parts", PATH="/nowhere")
    assert "SKIPPED the whole pass: There is no " in found.stdout
    assert "*** slow" not in found.stdout
    found = _all("slow", "--version", module="tests.parts", PATH="/nowhere")
    assert "*** slow" in found.stdout
    assert "postgresql" not in found.stdout


def test_folders_of_passes_exist() -> None:
    assert [folder for folder in (*WAITING, *DIFFERING) if not (ROOT / folder).is_dir()] == []


@pytest.mark.parametrize(
    ("part", "mark"),
    [("slow", "slow"), ("slow", "sampled"), ("simulations", "simulation"), ("faults", "fault")],
)
def test_marked_tests_are_where_their_part_looks(part: str, mark: str) -> None:
    marked = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(
            rf"^\s*(@|pytestmark\b.*)pytest\.mark\.{mark}\b", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    assert marked
    assert marked <= {*PARTS[part].find_files()}


def test_a_sample_is_the_same_for_a_seed_and_begins_with_what_changed() -> None:
    chosen = order_sample("a seed", ["tests/commands"])
    assert chosen == order_sample("a seed", ["tests/commands"])
    assert chosen != order_sample("another", ["tests/commands"])
    first = [unit for unit in chosen if unit[0] == "slow" and unit[1].startswith("tests/commands/")]
    assert first and chosen[: len(first)] == first
    assert {part for part, _ in chosen} >= {"postgresql", "slow", "simulations", "faults"}


def test_nothing_changed_since_the_same_commit() -> None:
    assert find_changed_tests("HEAD") == []


def test_a_call_is_long_by_the_loops_beside_it() -> None:
    idle = [(float(at), 0.04) for at in range(0, 20, 2)]
    busy = [(float(at), 0.12) for at in range(20, 60, 2)]
    calls = [("quick", 10.0, 4.7), ("long", 10.0, 5.0), ("delayed", 40.0, 14.0), ("longest", 40.0, 15.0)]
    found = find_long_calls(calls, [*idle, *busy])
    assert [name for name, _, _ in found] == ["long", "longest"]


def test_journeys_are_few_and_exist() -> None:
    assert len(JOURNEYS) <= MOST_JOURNEYS
    missing = []
    for name in JOURNEYS:
        file, _, function = name.partition("::")
        path = ROOT / file
        if not path.is_file() or f"def {function.rpartition('::')[2]}(" not in path.read_text(
            encoding="utf-8"
        ):
            missing.append(name)
    assert missing == []


LONG_CALLS = """
import pytest
from tests.call_times import time_loop

@pytest.mark.parametrize("kind", ["ordinary", pytest.param("marked", marks=pytest.mark.slow)])
def test_long(kind):
    for _ in range(600):
        time_loop()
"""


@pytest.mark.slow
def test_a_long_call_fails_its_pass(tmp_path: Path) -> None:
    assert TURNS
    file = tmp_path / "test_long.py"
    file.write_text(LONG_CALLS)
    done = _all(str(file), "-c", "pyproject.toml", "--rootdir", ".", "-n2", "-m", "")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Make it cheaper, or mark it slow." in done.stdout
    assert "test_long[ordinary]: at most" in done.stdout and "test_long[marked]: at most" not in done.stdout
    assert " 2 passed in " in done.stdout


SAMPLED = """
import pytest

@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", range(7))
def test_number(number): pass
"""


def test_of_a_sampled_table_some_cases_stay(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_collection_modifyitems")
    (tmp_path / "test_sampled.py").write_text(SAMPLED)
    options = ["-q", "--collect-only", "-m", "not slow", "-c", "pyproject.toml", "--rootdir", "."]
    argv = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "2/7 tests collected (5 deselected)" in done.stdout, done.stdout

"""Processes that share a pass run every test once between them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.passes import ROOT
from tests.sharing import NUMBER, stretches, take, untaken

MODULE = """
import os, time
import pytest

@pytest.fixture(scope="module")
def made():
    yield note("made")
    note("gone")

def note(word):
    with open({notes!r}, "a") as file:
        file.write(f"{{os.getpid()}} {name} {{word}}\\n")

@pytest.mark.parametrize("case", range(3))
def test_it(made, case):
    time.sleep(0.01)
    note(f"case {{case}}")
"""


def process(folder: Path, *more: str, code: int = 0) -> str:
    """Run a process of a pass over the files in a folder, and return what it printed."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.sharing",
            f"--shared-in={folder / 'taken'}",
            folder,
            *more,
        ],
        cwd=ROOT,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "taken").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\nmarkers =\n  slow\n")
    for n in range(6):
        (tmp_path / f"test_{n}.py").write_text(MODULE.format(notes=str(tmp_path / "notes"), name=n))
    return tmp_path


def notes(folder: Path) -> list[list[str]]:
    """Return who noted what: process, file and what happened."""
    return [line.split(" ", 2) for line in (folder / "notes").read_text().splitlines()]


EVERYTHING = Counter(
    (str(n), word) for n in range(6) for word in ("made", "case 0", "case 1", "case 2", "gone")
)


def test_two_processes_run_every_test_once_and_none_makes_what_the_other_has_made(folder: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(process, [folder, folder]))
    assert Counter((name, word) for _, name, word in notes(folder)) == EVERYTHING
    by_file = {(name, who) for who, name, _ in notes(folder)}
    assert len(by_file) == 6


def test_a_process_that_comes_later_takes_what_is_left_from_the_other_end(folder: Path) -> None:
    assert take(folder / "taken", "0 test_2.py")
    assert " 15 passed in " in process(folder)
    assert list(dict.fromkeys(name for _, name, _ in notes(folder))) == ["5", "4", "3", "1", "0"]
    assert untaken(folder / "taken") == 0
    assert "no tests ran" in process(folder)


def test_what_takes_long_comes_first(folder: Path) -> None:
    (folder / "test_4.py").write_text(
        (folder / "test_4.py").read_text() + "\npytestmark = pytest.mark.slow\n"
    )
    process(folder)
    assert list(dict.fromkeys(name for _, name, _ in notes(folder))) == ["4", "0", "1", "2", "3", "5"]


def test_where_one_stops_at_a_failure_the_others_find_nothing_more(folder: Path) -> None:
    (folder / "test_0.py").write_text("def test_wrong(): assert 0\n")
    assert "1 failed" in process(folder, "-x", code=1)
    assert untaken(folder / "taken") == 0
    assert not (folder / "notes").exists()


def test_a_file_that_cannot_be_imported_stops_the_process_before_its_first_test(folder: Path) -> None:
    (folder / "test_0.py").write_text("import nothing_of_this_name\n")
    assert "nothing_of_this_name" in process(folder, code=2)
    assert not (folder / "notes").exists()


def test_collecting_takes_nothing(folder: Path) -> None:
    assert "18 tests collected" in process(folder, "--collect-only")
    assert not list((folder / "taken").iterdir())


def test_nothing_is_left_over_before_anybody_has_collected(tmp_path: Path) -> None:
    assert untaken(tmp_path) == 0
    (tmp_path / NUMBER).write_text("2")
    assert take(tmp_path, "0 a/test_b.py")
    assert not take(tmp_path, "0 a/test_b.py")
    assert untaken(tmp_path) == 1


def test_every_test_of_this_pass_is_in_one_stretch(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    found = [item for together in stretches(items).values() for item in together]
    assert Counter(item.nodeid for item in found) == Counter(item.nodeid for item in items)

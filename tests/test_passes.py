"""What `make test` runs in which pass, and how it ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.all import embedded, names_files
from tests.lanes import WORTH_A_PROCESS, Shared, helped, lanes, side_by_side
from tests.passes import Environment, Pass, Tell, code_of, remember, run, show, together
from tests.services.servers import NotHere
from tests.sharing import NUMBER


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], False),
        (["-k", "shell", "-x"], False),
        (["tests/web"], True),
        (["-x", "tests/evaluators/test_shell.py::test_it_takes_any_line"], True),
    ],
)
def test_it_knows_where_a_file_is_named(arguments: list[str], named: bool) -> None:
    assert names_files(arguments) is named


@pytest.mark.parametrize(
    ("codes", "expected"),
    [([0, 0, 0], 0), ([0, 1, 0], 1), ([5, 0, 5], 0), ([5, 1, 0], 1), ([5, 5, 5], 5), ([0, 2, 1], 2)],
)
def test_it_ends_with_the_worst_code_of_what_was_there(codes: list[int], expected: int) -> None:
    assert code_of([Pass("one", code) for code in codes]) == expected


@pytest.mark.parametrize("quiet", [[], ["-q"]], ids=["as it is", "quiet"])
def test_it_keeps_what_passed_and_what_was_skipped_and_why(tmp_path: Path, quiet: list[str]) -> None:
    file = tmp_path / "test_two.py"
    file.write_text(
        "import pytest\n\ndef test_one(): pass\n\n"
        "@pytest.mark.skip(reason='There is no moon.')\ndef test_two(): pass\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -ra -p no:cacheprovider\n")
    arguments = ["-c", str(tmp_path / "pytest.ini"), str(file), *quiet]
    done = run("two", arguments, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": None})
    assert done.code == 0
    assert done.summary.startswith("1 passed, 1 skipped in ")
    assert [line.partition(": ")[2] for line in done.skipped] == ["There is no moon."]


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("\x1b[32m==== \x1b[1m3 passed\x1b[0m, 1 warning in 64.20s (0:01:04) ====\x1b[0m\n", "3 passed, 1 warning in 64.20s (0:01:04)"),
        ("no tests ran in 0.01s\n", "no tests ran in 0.01s"),
        ("12/20 tests collected (8 deselected) in 0.30s\n", "12/20 tests collected (8 deselected) in 0.30s"),
        ("0.50s call     tests/web/test_search.py::test_it_finds\n", ""),
        ("2 of them ended in a while\n", ""),
    ],
)  # fmt: skip
def test_only_the_last_line_is_taken_for_a_summary(line: str, kept: str) -> None:
    done = Pass("one")
    remember(done, line)
    assert done.summary == kept


def test_two_lanes_run_at_the_same_time_and_are_told_one_after_the_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    met = threading.Barrier(2, timeout=10)

    def of(name: str, tell: Tell) -> list[Pass]:
        tell(f"{name} begins\n")
        met.wait()
        tell(f"{name} ends\n")
        return [Pass(name), Pass("more")]

    done = side_by_side([partial(of, "one"), partial(of, "other")])
    assert [each.name for each in done] == ["one", "more", "other", "more"]
    assert capsys.readouterr().out == "one begins\none ends\nother begins\nother ends\n"


def test_a_lane_that_cannot_start_does_not_hold_the_other() -> None:
    def away(tell: Tell) -> list[Pass]:
        tell("no\n")
        raise OSError("There is no room.")

    with pytest.raises(OSError, match="There is no room"):
        side_by_side([lambda tell: [Pass("one")], away])


FILE = """import os, signal
def test_kept(): open({ran!r}, "a").write("{name}\\n")
def test_end(): {end}
"""


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Shared]:
    """Return what makes a pass over a few files, which note in `ran` that they ran."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def of(name: str, *, files: int = 1, end: str = "pass", servers: Any = embedded) -> Shared:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "pytest.ini").write_text(
            "[pytest]\naddopts = -ra -p no:cacheprovider\npython_files = case_*.py\n"
        )
        for n in range(files):
            text = FILE.format(ran=str(tmp_path / "ran"), name=f"{name} {n}", end=end)
            (folder / f"case_{n}.py").write_text(text)
        taken = tmp_path / f"taken of {name}"
        taken.mkdir()
        return Shared(name, [str(folder)], servers, taken)

    return of


def ran(tmp_path: Path) -> list[str]:
    return sorted((tmp_path / "ran").read_text().splitlines())


@pytest.mark.parametrize("processors", [1, 2])
def test_lanes_run_every_file_once(shared: Any, tmp_path: Path, processors: int) -> None:
    one, other = shared("one", files=3), shared("other", files=2)
    done = side_by_side(lanes(one, other, processors=processors))
    assert [each.name for each in done] == ["one", "other"]
    assert [(each.code, each.summary.partition(" in ")[0]) for each in done] == [
        (0, "6 passed"),
        (0, "4 passed"),
    ]
    assert ran(tmp_path) == ["one 0", "one 1", "one 2", "other 0", "other 1"]


def test_what_nobody_has_begun_is_done_by_another_process(shared: Any, tmp_path: Path) -> None:
    other = shared("other", files=WORTH_A_PROCESS + 2, end="os.kill(os.getpid(), signal.SIGKILL)")
    # It dies in its first file, when it has taken the next.
    dead = other.begin(show)
    assert (dead.code, dead.summary) == (128 + signal.SIGKILL, "")
    for file in (tmp_path / "other").glob("case_*.py"):
        file.write_text(file.read_text().replace("os.kill(os.getpid(), signal.SIGKILL)", "pass"))
    told: list[str] = []
    done = [dead, *helped([other], told.append)]
    assert "\n*** More of other\n\n" in told
    assert len(ran(tmp_path)) == len(set(ran(tmp_path))) == 1 + WORTH_A_PROCESS
    both = together(done, "other")
    assert both.code == 128 + signal.SIGKILL
    assert both.summary.startswith(f"1 process ended with exit code 137, {2 * WORTH_A_PROCESS} passed in ")


def test_a_few_files_are_not_worth_another_process(shared: Any) -> None:
    other = shared("other", files=WORTH_A_PROCESS)
    (other.folder / NUMBER).write_text(str(WORTH_A_PROCESS - 1))
    assert helped([other], show) == []


def test_nobody_waits_for_a_pass_that_ended_without_saying_how_much_there_is(shared: Any) -> None:
    other = shared("other", files=WORTH_A_PROCESS)
    (other.folder.parent / "other" / "case_0.py").write_text("import nothing_of_this_name\n")
    assert other.begin(show).code == 2
    assert helped([other], show) == []


def test_a_pass_whose_servers_are_missing_says_which(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def away() -> Iterator[Environment]:
        raise NotHere("There is no Redis here.")
        yield {}

    monkeypatch.delenv("EVALHUB_TEST_REQUIRE", raising=False)
    done = shared("one", servers=away).begin(show)
    assert (done.code, done.summary, done.skipped) == (
        0,
        "not run",
        ["The whole pass: There is no Redis here."],
    )
    monkeypatch.setenv("EVALHUB_TEST_REQUIRE", "browser,redis")
    assert shared("two", servers=away).begin(show).code == 1


def test_processes_of_one_pass_are_summed_up() -> None:
    parts = [
        Pass(
            "one",
            0,
            "7 passed, 1 skipped, 5 deselected, 1 warning in 70.01s (0:01:10)",
            ["SKIPPED [1] a"],
            71.0,
        ),
        Pass("other", 0, "1 passed in 1.00s", [], 2.0),
        Pass("one", 1, "1 failed, 2 passed, 5 deselected, 2 warnings in 3.20s", ["SKIPPED [1] b"], 4.0),
        Pass("one", 5, "no tests ran in 0.10s", [], 1.0),
    ]
    assert together(parts, "one") == Pass(
        "one",
        1,
        "9 passed, 1 skipped, 5 deselected, 3 warning, 1 failed in 71 + 4 + 1 s",
        ["SKIPPED [1] a", "SKIPPED [1] b"],
        76.0,
    )
    assert together(parts, "other") is parts[1]

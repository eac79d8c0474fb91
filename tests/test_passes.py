"""What `make test` runs in which pass, and how it ends."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.all import Pass, Tell, code_of, names_files, remember, run, side_by_side


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


def test_two_passes_run_at_the_same_time_and_are_told_one_after_the_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    met = threading.Barrier(2, timeout=10)

    def of(name: str, tell: Tell) -> Pass:
        tell(f"{name} begins\n")
        met.wait()
        tell(f"{name} ends\n")
        return Pass(name)

    done = side_by_side(lambda tell: of("one", tell), lambda tell: of("other", tell), processors=2)
    assert [each.name for each in done] == ["one", "other"]
    assert capsys.readouterr().out == "one begins\none ends\nother begins\nother ends\n"


def test_one_processor_runs_one_pass_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    def of(name: str, tell: Tell) -> Pass:
        tell(f"{name}\n")
        return Pass(name, seconds=threading.get_ident())

    done = side_by_side(lambda tell: of("one", tell), lambda tell: of("other", tell), processors=1)
    assert {each.seconds for each in done} == {threading.get_ident()}
    assert capsys.readouterr().out == "one\nother\n"


def test_a_pass_that_cannot_start_does_not_hold_the_other() -> None:
    def away(tell: Tell) -> Pass:
        tell("no\n")
        raise OSError("There is no room.")

    with pytest.raises(OSError, match="There is no room"):
        side_by_side(lambda tell: Pass("one"), away, processors=2)

"""What `make test` runs in which pass, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.all import Pass, code_of, names_files, remember, run


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

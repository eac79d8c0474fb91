"""What `make test` runs in which pass, and how it ends."""

from __future__ import annotations

import pytest

from tests.all import Pass, code_of, names_files


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

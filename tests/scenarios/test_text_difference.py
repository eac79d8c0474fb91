"""Differences of texts: what changed with the lines around it, within limits."""

from __future__ import annotations

import time

import pytest

from scenarios.differences import MOST_LINES, MOST_SHOWN, DiffLine, lines_of, text_difference

TEN = [f"line {n}" for n in range(1, 11)]


def test_a_change_is_shown_with_surrounding_lines():
    found = text_difference(TEN, [*TEN[:4], "new", *TEN[5:]])
    assert found is not None
    (hunk,) = found.hunks
    assert [line.look for line in hunk] == ["", "", "", "removed", "added", "", "", ""]
    assert hunk[3:5] == (DiffLine(5, None, "line 5"), DiffLine(None, 5, "new"))
    assert (found.added, found.removed, found.is_cut) == (1, 1, False)


def test_distant_changes_are_separate_hunks():
    many = [f"line {n}" for n in range(40)]
    found = text_difference(many, ["first", *many, "last"])
    assert found is not None
    assert [hunk[0].after for hunk in found.hunks] == [1, 39]


def test_a_new_text_is_added_whole_however_long():
    found = text_difference([], [str(n) for n in range(5000)])
    assert found is not None
    assert (found.added, found.is_cut) == (5000, True)
    assert sum(map(len, found.hunks)) == MOST_SHOWN


def test_texts_that_are_the_same_differ_in_nothing():
    found = text_difference(TEN, list(TEN))
    assert found is not None
    assert found.hunks == ()


def test_texts_of_too_many_lines_are_not_compared():
    long = [str(n) for n in range(MOST_LINES + 1)]
    assert text_difference(long, TEN) is None
    assert text_difference(TEN, long) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["a"] * 199, ["a", "b"] * 99),
        (["a", "b"] * 500, ["b", "a"] * 500),
        ([str(n % 95) for n in range(1000)], [str(n % 95) for n in range(1000)][::-1]),
    ],
    ids=["one line over and over", "two lines by turns", "rounds backwards"],
)
def test_texts_that_repeat_themselves_take_no_longer(before, after):
    taken = []
    for _ in range(3):
        began = time.process_time()
        assert text_difference(before, after) is not None
        taken.append(time.process_time() - began)
    # The quickest of three: the others may pay for a garbage collection.
    assert min(taken) < 0.2


@pytest.mark.parametrize(("text", "lines"), [("", []), ("a", ["a"]), ("a\n", ["a"]), ("a\n\n", ["a", ""])])
def test_the_end_of_the_last_line_begins_no_other(text, lines):
    assert lines_of(text) == lines

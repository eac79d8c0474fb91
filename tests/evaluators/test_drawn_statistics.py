"""The pictures of docs/statistics.md are those that the functions draw today."""

from __future__ import annotations

import pytest

from tests.evaluators.drawn_statistics import FOLDER, PICTURES


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_as_drawn_today(name: str) -> None:
    drawn = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == str(PICTURES[name]()), "Draw them with `python -m tests.evaluators.drawn_statistics`."

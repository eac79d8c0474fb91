"""The wording of verdicts."""

from __future__ import annotations

import pytest

from evaluators.verdict_sentences import sign_of_p


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (None, "= –"),
        (0.25, "= 0.250"),
        (0.0049, "= 0.005"),
        (0.0004, "= 0.0004"),
        (0.0001, "= 0.0001"),
        (0.00009, "< 0.0001"),
        (0.0, "< 0.0001"),
    ],
)
def test_a_p_is_never_shown_as_nothing(p: float | None, text: str) -> None:
    assert sign_of_p(p) == text

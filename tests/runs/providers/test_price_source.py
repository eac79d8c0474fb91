"""Where a trial's cost comes from."""

from __future__ import annotations

import pytest

from evaluators.model import Price
from runs.providers.prices import price_source


@pytest.mark.parametrize(
    ("cost", "price", "source"),
    [
        (None, None, ""),
        (None, Price("m", 1, 2), ""),
        (0.5, None, "reported by the agent"),
        (0.5, Price("m", 1, 2.5, since="2026-11-01"), "project m 1/2.5"),
        (0.0, Price("openai/m", 1, 2, "litellm"), "litellm openai/m 1/2"),
    ],
)
def test_a_cost_has_a_source(cost, price, source):
    assert price_source(cost, price) == source

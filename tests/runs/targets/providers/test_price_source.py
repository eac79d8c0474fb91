"""Where a trial's cost comes from."""

from __future__ import annotations

import pytest

from evaluators.model import Price
from runs.targets.providers.prices import price_source

pytestmark = pytest.mark.one_database


@pytest.mark.parametrize(
    ("cost", "prices", "source"),
    [
        (None, (), ""),
        (None, (Price("m", 1, 2),), ""),
        (0.5, (), "reported by the agent"),
        (0.5, (Price("m", 1, 2.5, since="2026-11-01"),), "project m 1/2.5"),
        (0.0, (Price("openai/m", 1, 2, "litellm"),), "litellm openai/m 1/2"),
        (1, (Price("m", 1, 2, cache_read_per_million=0.1),), "project m 1/2 cache 0.1/-/-"),
        (1, (Price("m", 1, 2, reasoning_per_million=3),), "project m 1/2 reasoning 3"),
        (1, (Price("b", 1, 2), Price("a", 3, 4)), "project a 3/4; project b 1/2"),
    ],
)
def test_a_cost_has_a_source(cost, prices, source):
    assert price_source(cost, prices) == source

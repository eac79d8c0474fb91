"""What tokens cost by a price, and what a reader must know of it."""

from __future__ import annotations

import pytest

from evaluators.grading.costs import NO_RATE, TrialCost, compute, compute_cost, cost_sentences
from evaluators.model import MOST_TOKENS, Price, Usage, total_usage

PRICE = Price(
    "m",
    3.0,
    15.0,
    cache_read_per_million=0.3,
    cache_write_per_million=3.75,
    cache_write_1h_per_million=6.0,
    reasoning_per_million=20.0,
)
USAGE = Usage(
    1_000_000, 100_000, cache_read=600_000, cache_write=200_000, cache_write_1h=100_000, reasoning=40_000
)


def test_every_part_has_its_rate():
    fresh, read, written, for_hour = 0.3, 0.18, 0.75, 0.6
    assert compute_cost(USAGE, PRICE) == pytest.approx(fresh + read + written + for_hour + 0.9 + 0.8)


def test_parts_without_a_rate_cost_as_much_as_others():
    assert compute_cost(USAGE, Price("m", 3.0, 15.0)) == pytest.approx(3.0 + 1.5)
    only_writes = Price("m", 3.0, 15.0, cache_write_per_million=4.0)
    assert compute_cost(USAGE, only_writes) == pytest.approx(0.7 * 3.0 + 0.3 * 4.0 + 1.5)


def test_parts_never_exceed_their_whole():
    usage = Usage(10, 5, cache_read=8, cache_write=4, cache_write_1h=-1, reasoning=9)
    assert usage == Usage(10, 5, cache_read=8, cache_write=2, reasoning=5)
    assert usage.fresh == 0
    assert Usage(10**15, 1).input == MOST_TOKENS


def test_usages_add_up_by_part():
    assert total_usage([USAGE, None, USAGE]) == Usage(
        2_000_000,
        200_000,
        cache_read=1_200_000,
        cache_write=400_000,
        cache_write_1h=200_000,
        reasoning=80_000,
    )
    assert total_usage([None]) is None


def prices(model: str) -> Price | None:
    return {"big": Price("big", 10.0, 10.0), "small": Price("small", 1.0, 1.0)}.get(model)


def test_each_models_tokens_have_its_own_price():
    found = compute(Usage(3_000_000, 0), {"big": Usage(1_000_000), "small": Usage(2_000_000)}, "big", prices)
    assert found is not None
    assert (found.usd, [price.model for price in found.prices]) == (12.0, ["big", "small"])


def test_a_dated_name_has_the_price_of_the_runs_model():
    found = compute(
        Usage(1_000_000),
        {"big-20260101": Usage(1_000_000)},
        "provider/big",
        lambda name: prices(name.rpartition("/")[2]),
    )
    assert found is not None and found.usd == 10.0


def test_an_unknown_model_leaves_the_price_to_the_runs_model():
    by_model = {"other": Usage(1_000_000), "small": Usage(1_000_000)}
    found = compute(Usage(2_000_000), by_model, "small", prices)
    assert found is not None and found.usd == 2.0
    assert compute(Usage(2_000_000), by_model, "other", prices) is None


@pytest.mark.parametrize(
    ("reported", "computed", "differs"), [(1.0, 1.05, False), (1.0, 1.2, True), (1.2, 1.0, True), (0.0, 0.0, False), (0.0, 0.1, True), (1.0, None, False), (None, 1.0, False)]
)  # fmt: skip
def test_more_than_a_tenth_is_a_difference(reported, computed, differs):
    cost = TrialCost(reported=reported, computed=computed)
    assert cost.differs is differs
    stored = {"rules": 2, "reported": reported, "computed": computed, "in_full": ""}
    assert bool(list(cost_sentences(stored, "${:.2f}".format))) is differs


def test_cached_tokens_in_full_are_named_with_the_reason():
    [no_rate] = cost_sentences({"in_full": NO_RATE}, str)
    assert no_rate == "Cached tokens charged in full: the model's price has no rate for them."

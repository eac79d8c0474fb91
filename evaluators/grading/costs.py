"""What tokens cost by a price, and how a cost is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct, convert

from evaluators.model import Price, Usage

MILLION = 1_000_000
NOTABLE_DIFFERENCE = 0.1
"""The share of the agent's own cost by which a computed one differs notably."""
PARTS = ("cache_read", "cache_write", "cache_write_1h", "reasoning")
"""The parts of a usage, which are stored beside its sums."""
NO_RATE = "no rate"
"""Why cached tokens are charged in full: the price has no rate for them."""


class Computed(NamedTuple):
    """A cost by prices, in US dollars."""

    usd: float
    prices: tuple[Price, ...]
    in_full: bool
    """Whether cached tokens were charged as much as others, because a price has no rate for them."""


class TrialCost(Struct, frozen=True):
    """How the cost of a trial's agent is known, as stored with the trial. The trial has the cost itself."""

    reported: float | None = None
    """By the agent or service itself, in US dollars; it is the trial's cost then."""
    computed: float | None = None
    """By tokens and price."""
    in_full: str = ""
    """Why cached tokens are charged in full (`NO_RATE`); empty if they aren't."""

    @property
    def differs(self) -> bool:
        """Whether the agent's own cost and the computed one are more than a tenth apart."""
        if self.reported is None or self.computed is None:
            return False
        return abs(self.computed - self.reported) > NOTABLE_DIFFERENCE * max(self.reported, self.computed)


def compute_cost(usage: Usage, price: Price) -> float:
    """Return what these tokens cost, in US dollars; a part without a rate costs as much as the whole's others."""
    full = price.input_per_million
    written = _known_rate(price.cache_write_per_million, full)
    parts = (
        (usage.fresh, full),
        (usage.cache_read, _known_rate(price.cache_read_per_million, full)),
        (usage.cache_write, written),
        (usage.cache_write_1h, _known_rate(price.cache_write_1h_per_million, written)),
        (usage.output - usage.reasoning, price.output_per_million),
        (usage.reasoning, _known_rate(price.reasoning_per_million, price.output_per_million)),
    )
    return sum(tokens * rate for tokens, rate in parts) / MILLION


def charges_in_full(usage: Usage, price: Price) -> bool:
    """Return whether cached tokens cost as much as others, because the price has no rate for them."""
    no_write = price.cache_write_per_million is None
    return bool(
        (usage.cache_read and price.cache_read_per_million is None)
        or (usage.cache_write and no_write)
        or (usage.cache_write_1h and no_write and price.cache_write_1h_per_million is None)
    )


def compute(
    usage: Usage, by_model: Mapping[str, Usage], model: str, price_of: Callable[[str], Price | None]
) -> Computed | None:
    """Return the cost of a session's tokens; None without a price, and where the output's tokens aren't known.

    Each model's tokens have its own price, if all are known; else all have that of the run's model. A dated name of
    the run's model has the price of the model as the run names it.
    """
    if usage.output_unknown:
        return None
    if by_model:
        known = [(used, _price_named(name, model, price_of)) for name, used in by_model.items()]
        priced = [(used, price) for used, price in known if price is not None]
        if len(priced) == len(known):
            return _sum(priced)
    price = price_of(model) if model else None
    return _sum([(usage, price)]) if price else None


def _price_named(name: str, model: str, price_of: Callable[[str], Price | None]) -> Price | None:
    bare = model.rpartition("/")[2]
    if bare and (name == bare or name.startswith(f"{bare}-")):
        return price_of(model) or price_of(name)
    return price_of(name) if name else price_of(model)


def _sum(priced: list[tuple[Usage, Price]]) -> Computed:
    return Computed(
        sum(compute_cost(used, price) for used, price in priced),
        tuple(dict.fromkeys(price for _, price in priced)),
        any(charges_in_full(used, price) for used, price in priced),
    )


def _known_rate(rate: float | None, other: float) -> float:
    return other if rate is None else rate


def usage_parts(usage: Usage) -> dict[str, int]:
    """Return the parts of a usage, which are stored beside its sums."""
    return {name: getattr(usage, name) for name in PARTS}


def cost_sentences(cost: Mapping[str, Any], money: Callable[[float], str]) -> Iterator[str]:
    """Yield what a reader must know of a trial's cost, from the stored `TrialCost`."""
    known = convert(cost, TrialCost)
    if known.differs and known.reported is not None and known.computed is not None:
        yield (
            f"The agent reported a cost of {money(known.reported)}; "
            f"its tokens cost {money(known.computed)} by the model's price."
        )
    if known.in_full == NO_RATE:
        yield "Cached tokens charged in full: the model's price has no rate for them."

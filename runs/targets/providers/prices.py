"""What an answer cost: by the project's own prices, else by litellm's; nothing is known without either."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from evaluators.grading.costs import MILLION
from evaluators.model import Price

REPORTED = "reported by the agent"


def project_price(prices: Iterable[Price], model: str, *, today: str = "") -> Price | None:
    """Return the price of a model that holds today: the one that began last. Dates are ISO 8601.

    A price names a model by its whole litellm id or without the provider before the first slash; the whole id wins.
    """
    day = today or datetime.now(UTC).date().isoformat()
    bare = model.partition("/")[2] or model
    held = [price for price in prices if price.model in (model, bare) and price.since <= day]
    return max(held, key=lambda price: (price.model == model, price.since), default=None)


def litellm_price(model: str, *, batch: bool = False) -> Price | None:
    """Return the price from litellm's own map; None for an unknown model."""
    # Imported late, because pages import this module too.
    from runs.targets.language_models.litellm import load_litellm

    litellm = load_litellm()
    try:
        info: dict[str, Any] = dict(litellm.get_model_info(model))
    except Exception:
        # Broad because litellm raises bare exceptions for models that are not in its map.
        return None
    rates = {name: _per_million(info, field, batch) for name, field in _LITELLM_RATES.items()}
    read, written = rates.pop("input_per_million"), rates.pop("output_per_million")
    if not (read or written):
        return None
    return Price(model, read or 0.0, written or 0.0, "litellm", since="", **rates)


_LITELLM_RATES = {
    "input_per_million": "input_cost_per_token",
    "output_per_million": "output_cost_per_token",
    "cache_read_per_million": "cache_read_input_token_cost",
    "cache_write_per_million": "cache_creation_input_token_cost",
    "cache_write_1h_per_million": "cache_creation_input_token_cost_above_1hr",
    "reasoning_per_million": "output_cost_per_reasoning_token",
}


def known_price(prices: Iterable[Price], model: str) -> Price | None:
    """Return the price of a model: the project's, else the suite's, else litellm's; None for an unknown one."""
    return (project_price(prices, model) or litellm_price(model)) if model else None


def _per_million(info: dict[str, Any], field: str, batch: bool) -> float | None:
    per_token = info.get(f"{field}_batches") if batch else None
    per_token = info.get(field) if per_token is None else per_token
    return None if per_token is None else per_token * MILLION


def litellm_cost(response: Any, model: str) -> float | None:
    """Return a response's cost by litellm, with its rates for cached and reasoning tokens; None if unknown."""
    from runs.targets.language_models.litellm import load_litellm

    litellm = load_litellm()
    try:
        return float(litellm.completion_cost(response, model=model))
    except Exception:
        # Broad for the same reason; an unknown cost must not fail an answer.
        return None


def price_note(price: Price) -> str:
    """Return a note that says which price a cost was made with."""
    whose = f"{'litellm' if price.source == 'litellm' else f'the {price.source}'}'s price"
    since = f" since {price.since}" if price.since else ""
    cached = "".join(
        f", {rate:g} USD {what}"
        for rate, what in (
            (price.cache_read_per_million, "read from the cache"),
            (price.cache_write_per_million, "written to it"),
            (price.cache_write_1h_per_million, "written to it for an hour"),
        )
        if rate is not None
    )
    return (
        f"The cost is by {whose} of {price.model}{since}: {price.input_per_million:g} USD per million tokens read, "
        f"{price.output_per_million:g} USD written{cached}."
    )


def price_source(cost: float | None, prices: Iterable[Price]) -> str:
    """Return where a trial's cost comes from, equal for equal prices; empty for an unknown cost."""
    if cost is None:
        return ""
    return "; ".join(sorted({_named_price(price) for price in prices})) or REPORTED


def _named_price(price: Price) -> str:
    named = f"{price.source} {price.model} {price.input_per_million:g}/{price.output_per_million:g}"
    cached = (
        price.cache_read_per_million,
        price.cache_write_per_million,
        price.cache_write_1h_per_million,
    )
    if any(rate is not None for rate in cached):
        named += " cache " + "/".join("-" if rate is None else f"{rate:g}" for rate in cached)
    if price.reasoning_per_million not in (None, price.output_per_million):
        named += f" reasoning {price.reasoning_per_million:g}"
    return named

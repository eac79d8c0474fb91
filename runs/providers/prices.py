"""What an answer cost: by the project's own prices, else by litellm's; nothing is known without either."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from evaluators.model import Price, Usage

MILLION = 1_000_000
REPORTED = "reported by the agent"


def project_price(prices: Iterable[Price], model: str, *, today: str = "") -> Price | None:
    """Return the price of a model that holds today: the one that began last. Dates are ISO 8601.

    A price names a model by its whole litellm id or without the provider before the first slash; the whole id wins.
    """
    day = today or datetime.now(UTC).date().isoformat()
    bare = model.partition("/")[2] or model
    held = [price for price in prices if price.model in (model, bare) and price.since <= day]
    return max(held, key=lambda price: (price.model == model, price.since), default=None)


def cost_of(usage: Usage, price: Price) -> float:
    """Return what so many tokens cost, in US dollars."""
    return (usage.input * price.input_per_million + usage.output * price.output_per_million) / MILLION


def litellm_price(model: str, *, batch: bool = False) -> Price | None:
    """Return the price from litellm's own map; None for an unknown model."""
    # Imported late, because pages import this module too.
    from runs.providers.litellm_outbound import load_litellm

    litellm = load_litellm()
    try:
        info: dict[str, Any] = dict(litellm.get_model_info(model))
    except Exception:
        # Broad because litellm raises bare exceptions for models that are not in its map.
        return None
    read, written = (_per_token(info, direction, batch) for direction in ("input", "output"))
    if not (read or written):
        return None
    return Price(model, (read or 0.0) * MILLION, (written or 0.0) * MILLION, "litellm")


def known_price(prices: Iterable[Price], model: str) -> Price | None:
    """Return the price of a model: the project's, else the suite's, else litellm's; None for an unknown one."""
    return (project_price(prices, model) or litellm_price(model)) if model else None


def _per_token(info: dict[str, Any], direction: str, batch: bool) -> float | None:
    plain = info.get(f"{direction}_cost_per_token")
    found = info.get(f"{direction}_cost_per_token_batches") if batch else None
    return found if found is not None else plain


def litellm_cost(response: Any, model: str) -> float | None:
    """Return a response's cost by litellm, with its rates for cached and reasoning tokens; None if unknown."""
    from runs.providers.litellm_outbound import load_litellm

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
    return (
        f"The cost is by {whose} of {price.model}{since}: {price.input_per_million:g} USD per million tokens read, "
        f"{price.output_per_million:g} USD written."
    )


def price_source(cost: float | None, price: Price | None) -> str:
    """Return where a trial's cost comes from, equal for equal prices; empty for an unknown cost."""
    if cost is None:
        return ""
    if price is None:
        return REPORTED
    return f"{price.source} {price.model} {price.input_per_million:g}/{price.output_per_million:g}"

"""What a trial's agent cost: its own report, else its tokens by the model's price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from evalhub.lib.numbers import format_money
from evaluators.grading.costs import NO_RATE, Computed, TrialCost, charges_in_full, compute
from evaluators.model import Price, Transcript
from runs.targets.providers.base import Recording
from runs.targets.providers.options import ResolvedTarget
from runs.targets.providers.prices import known_price, price_note, price_source, project_price
from runs.targets.providers.registry import MODELS

AGENTS = frozenset(("codex", "claude_code", "opencode", "mini_swe_agent"))
"""Readers of agents' own streams, whose reported cost is compared with a computed one."""


def price_recording(
    recording: Recording, transcript: Transcript, target: ResolvedTarget, model: str
) -> Recording:
    """Return the recording with its cost and how it is known: reported by the agent, else by its tokens."""
    used = recording.usage or transcript.usage
    known = recording.cost_usd if recording.cost_usd is not None else transcript.cost_usd
    if recording.price is not None:
        # The model's provider has its own price already.
        in_full = used is not None and charges_in_full(used, recording.price)
        cost = TrialCost(computed=known, in_full=NO_RATE if in_full else "")
        return replace(recording, cost=cost, price_source=price_source(known, (recording.price,)))
    compares = known is None or recording.parser in AGENTS
    computed = computed_cost(recording, transcript, target, model) if compares else None
    if known is not None:
        reported = TrialCost(
            reported=known, computed=None if computed is None or computed.in_full else computed.usd
        )
        return replace(recording, cost_usd=known, cost=reported, price_source=price_source(known, ()))
    if computed is None:
        return recording
    return replace(
        recording,
        cost_usd=computed.usd,
        cost=TrialCost(computed=computed.usd, in_full=NO_RATE if computed.in_full else ""),
        price_source=price_source(computed.usd, computed.prices),
        notes=(*recording.notes, *map(price_note, computed.prices)),
    )


def computed_cost(
    recording: Recording, transcript: Transcript, target: ResolvedTarget, model: str
) -> Computed | None:
    """Return the cost of a recording's tokens by the prices of its target; None without tokens or price."""
    if recording.usage is not None:
        return compute(recording.usage, {}, model, price_lookup(target.kind, target.prices))
    if transcript.usage is None:
        return None
    prices = price_lookup(target.kind, target.prices)
    return compute(transcript.usage, transcript.usage_by_model, model, prices)


def price_lookup(kind: str, prices: tuple[Price, ...]) -> Callable[[str], Price | None]:
    """Return a function that gives a model's current price, for a kind of target."""
    # A model's provider has asked litellm already, and a mock's tokens are made up.
    asks_litellm = kind not in MODELS and kind != "mock"
    look = known_price if asks_litellm else project_price
    return lambda model: look(prices, model)


def note_cost_limit(recording: Recording, max_usd: float | None) -> Recording:
    """Return the recording with a note if it cost more than the scenario allows (llm-tool-test, cost.max_usd)."""
    cost = recording.cost_usd
    if recording.cost_limit or max_usd is None or cost is None or cost <= max_usd:
        return recording
    note = f"The agent cost {format_money(cost)}, more than the {format_money(max_usd)} that cost.max_usd allows."
    return replace(recording, cost_limit=note, notes=(*recording.notes, note))

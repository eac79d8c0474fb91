"""The tokens of trials, and notes on their costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from evalhub.lib.numbers import counted, money
from evaluators.grading.costs import NO_RATE, TrialCost, cost_sentences


class PaidTrial(Struct, frozen=True):
    """The parts of a trial's detail that its cost is explained by."""

    cost: TrialCost | None = None
    cost_limit: str = ""


def trial_warnings(detail: Mapping[str, Any]) -> list[str]:
    """Return notes on a trial's cost and its limit; empty without any."""
    limit = detail.get("cost_limit") or ""
    return [*([limit] if limit else []), *cost_sentences(detail.get("cost") or {}, money)]


def run_notes(trials: Iterable[PaidTrial]) -> list[str]:
    """Return the same of a run's trials, each sentence with their number."""
    known = list(trials)
    costs = [each.cost for each in known if each.cost]
    limited = sum(bool(each.cost_limit) for each in known)
    differing = sum(each.differs for each in costs)
    no_rate = sum(each.in_full == NO_RATE for each in costs)
    sentences = (
        (limited, "reached the cost limit (cost.max_usd)."),
        (differing, "where the agent's own cost and that of its tokens are more than a tenth apart."),
        (no_rate, "with cached tokens charged in full: the model's price has no rate for them."),
    )
    return [f"{counted(n, 'trial')} {sentence}" for n, sentence in sentences if n]


_PART_LABELS = {
    "cache_read": "read from cache",
    "cache_write": "written to cache",
    "cache_write_1h": "written to cache for 1 h",
    "reasoning": "reasoning",
}


def token_parts(usage: Mapping[str, int]) -> str:
    """Return a trial's cached and reasoning tokens in words; empty without any."""
    return ", ".join(f"{usage[name]:,} {label}" for name, label in _PART_LABELS.items() if usage.get(name))

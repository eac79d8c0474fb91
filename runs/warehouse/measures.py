"""Define units and directions of known measures; other names are accepted as they are."""

from __future__ import annotations

from django.db import transaction

from runs.models import Measure
from runs.models.measure import Better

KNOWN: dict[tuple[str, str], tuple[str, Better]] = {
    ("trial", "pass"): ("rate", Better.HIGHER),
    ("trial", "composite"): ("score", Better.HIGHER),
    ("trial", "seconds"): ("s", Better.LOWER),
    ("trial", "cost_usd"): ("USD", Better.LOWER),
    ("trial", "tokens_in"): ("tokens", Better.LOWER),
    ("trial", "tokens_out"): ("tokens", Better.LOWER),
    ("interaction", "total_commands"): ("commands", Better.LOWER),
    ("interaction", "unique_commands"): ("commands", Better.NONE),
    ("interaction", "error_count"): ("commands", Better.LOWER),
    ("interaction", "error_rate"): ("rate", Better.LOWER),
    ("interaction", "retry_count"): ("commands", Better.LOWER),
    ("interaction", "retry_rate"): ("rate", Better.LOWER),
    ("interaction", "help_seeking"): ("calls", Better.LOWER),
    ("interaction", "first_try_success_rate"): ("rate", Better.HIGHER),
    ("interaction", "iteration_ratio"): ("ratio", Better.HIGHER),
    ("interaction", "completed"): ("rate", Better.HIGHER),
    ("interaction", "retries_after_failure"): ("commands", Better.LOWER),
    ("interaction", "exact_repeats"): ("commands", Better.LOWER),
    ("interaction", "unknown_exit"): ("commands", Better.NONE),
}
_BY_LAYER = {
    "gates": ("rate", Better.HIGHER),
    "assertions": ("rate", Better.HIGHER),
    "judge": ("score", Better.HIGHER),
    "evaluators": ("score", Better.HIGHER),
}


def unit_of(layer: str, name: str) -> tuple[str, Better]:
    """Return a measure's unit and direction; empty for unknown measures."""
    return KNOWN.get((layer, name)) or _BY_LAYER.get(layer) or ("", Better.NONE)


_ids: dict[tuple[str, str], int] = {}


def measure_id(layer: str, name: str) -> int:
    """Return the key of a measure's row; create it on first use."""
    known = _ids.get((layer, name))
    if known is not None:
        return known
    unit, better = unit_of(layer, name)
    measure, _ = Measure.objects.get_or_create(
        layer=layer, name=name[:200], defaults={"unit": unit, "better": better}
    )
    # Cached only after the commit: a rolled-back row doesn't exist.
    transaction.on_commit(lambda: _ids.setdefault((layer, name), measure.pk))
    return measure.pk


def forget() -> None:
    """Clear the cached keys, for tests that empty the tables."""
    _ids.clear()


INTERACTION = {
    "first_try_success_rate": "First-try success",
    "error_rate": "Error rate",
    "retry_rate": "Retry rate",
    "help_seeking": "Help opened",
    "total_commands": "Commands",
    "iteration_ratio": "Iteration ratio",
    "completed": "Completed",
}
"""Labels of layer 1's measures in display order."""

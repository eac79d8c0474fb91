"""Define units and directions of known measures; other names are accepted as they are."""

from __future__ import annotations

from collections.abc import Collection

from evalhub.lib.limits import LONGEST_NAME
from runs.models import Measure
from runs.models.measure import Better

KNOWN: dict[tuple[str, str], tuple[str, Better]] = {
    ("trial", "pass"): ("rate", Better.HIGHER),
    ("trial", "false_done"): ("rate", Better.LOWER),
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
    ("interaction", "wasted_tokens"): ("tokens", Better.LOWER),
    ("interaction", "tokens_in_failed_commands"): ("tokens", Better.LOWER),
    ("interaction", "tokens_in_repeated_help"): ("tokens", Better.LOWER),
    ("interaction", "tokens_after_done"): ("tokens", Better.LOWER),
    ("interaction", "unknown_exit"): ("commands", Better.NONE),
    ("interaction", "known"): ("commands", Better.NONE),
    ("interaction", "estimated"): ("commands", Better.NONE),
    ("interaction", "not_run"): ("calls", Better.NONE),
    ("interaction", "indirect"): ("calls", Better.NONE),
    ("interaction", "mentioned"): ("commands", Better.NONE),
    ("interaction", "failed_unknown_tool"): ("commands", Better.LOWER),
    ("interaction", "failed_arguments"): ("commands", Better.LOWER),
    ("interaction", "failed_is_error"): ("commands", Better.LOWER),
    ("interaction", "failed_protocol"): ("commands", Better.LOWER),
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


def measure_ids(names: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Return the keys of measures' rows by layer and name. New measures are created. One query, or three."""
    named = {(layer, name[:LONGEST_NAME]) for layer, name in names}
    ids = _stored_ids(named)
    if new := sorted(named - ids.keys()):
        Measure.objects.bulk_create([_measure(*key) for key in new], ignore_conflicts=True)
        ids |= _stored_ids(named)
    return {(layer, name): ids[layer, name[:LONGEST_NAME]] for layer, name in names}


def _stored_ids(names: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    rows = Measure.objects.filter(layer__in={layer for layer, _ in names})
    return {(layer, name): pk for pk, layer, name in rows.values_list("pk", "layer", "name")}


def _measure(layer: str, name: str) -> Measure:
    unit, better = unit_of(layer, name)
    return Measure(layer=layer, name=name, unit=unit, better=better)


INTERACTION = {
    "first_try_success_rate": "First-try success",
    "error_rate": "Error rate",
    "retry_rate": "Retry rate",
    "help_seeking": "Help opened",
    "total_commands": "Commands",
    "iteration_ratio": "Iteration ratio",
    "wasted_tokens": "Wasted tokens",
    "tokens_in_failed_commands": "Tokens in failed commands",
    "tokens_in_repeated_help": "Tokens in repeated help",
    "tokens_after_done": "Tokens after done",
    "completed": "Completed",
}
"""Labels of layer 1's measures in display order."""
CRITERION = "criterion."
"""Prefix of the judge's score of one criterion."""
_NAMES = {
    ("trial", "pass"): "Pass rate",
    ("trial", "false_done"): "False done",
    ("trial", "seconds"): "Time per trial",
    ("trial", "cost_usd"): "Cost per trial",
    ("trial", "tokens_in"): "Input tokens",
    ("trial", "tokens_out"): "Output tokens",
    ("judge", "judge"): "Judge score",
    ("interaction", "unknown_exit"): "Unknown ends",
    ("interaction", "known"): "Known ends",
    ("interaction", "estimated"): "Estimated ends",
    ("interaction", "not_run"): "Not run",
    ("interaction", "indirect"): "Indirect calls",
    ("interaction", "mentioned"): "Mentioned, not counted",
    ("interaction", "failed_unknown_tool"): "Failed: unknown tool",
    ("interaction", "failed_arguments"): "Failed: arguments",
    ("interaction", "failed_is_error"): "Failed: tool's error",
    ("interaction", "failed_protocol"): "Failed: protocol",
}


def label_of(measure: Measure) -> str:
    """Return a measure's label."""
    return label_named(measure.layer, measure.name)


def label_named(layer: str, name: str) -> str:
    """Return the label of a measure by its layer and name."""
    if label := _NAMES.get((layer, name)):
        return label
    if layer == "assertions":
        # Spelled as in the eval file.
        return name
    words = name.removeprefix(CRITERION).replace("_", " ")
    plain = f"{words[:1].upper()}{words[1:]}"
    return INTERACTION.get(name, plain) if layer == "interaction" else plain


def label_of_key(measure: str) -> str:
    """Return the label of a measure by layer and name in one, such as `trial/pass`."""
    layer, _, name = measure.partition("/")
    return label_named(layer, name)

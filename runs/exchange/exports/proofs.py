"""Proofs of a suite as lines for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runs.results.seals import ScenarioSeal, count_seals


def proof_lines(seals: Sequence[ScenarioSeal]) -> list[str]:
    """Return a line for each scenario, with its notes indented below, and their sum."""
    lines = []
    for each in seals:
        sign = "✓" if each.is_proved else ("✗" if each.is_failure else "–")
        lines.append(f"{sign} {each.key}: {each.label}")
        lines += [f"    {note}" for note in each.notes]
    return [*lines, f"{count_seals(seals)}." if seals else "No scenarios."]


def seals_json(seals: Sequence[ScenarioSeal]) -> list[dict[str, Any]]:
    """Return the seals as JSON."""
    return [
        {
            "scenario": each.key,
            "seal": each.seal.value,
            "reason": each.reason,
            "is_failure": each.is_failure,
            "held": list(each.held),
            "cheating": each.cheating.value,
            "attacks": each.attacks,
            "fooled": each.fooled,
        }
        for each in seals
    ]

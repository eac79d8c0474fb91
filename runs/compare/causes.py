"""What changed between a run and its baseline, and how often that went with a regression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluators.statistics.measure_change import ChangeVerdict
from runs.compare.differences import (
    LABELS,
    FingerprintDifference,
    fingerprint_differences,
    only_tool_changed,
)
from runs.models import Run

SCENARIOS = "scenarios"
FACTORS: dict[str, tuple[str, ...]] = {
    "tool": ("tool_version", "tool_files"),
    "guidance": ("guidance",),
    "model": ("model",),
    "judge": ("judge", "judge_sha256", "threshold"),
    "target": ("target", "target_sha256", "endpoint", "provider", "provider_version"),
    "evalhub": ("evalhub",),
    "sandbox": ("sandbox",),
    SCENARIOS: ("suite_sha256", "fixture", "rubric", "gates"),
}
"""What a result depends on, by its parts of the fingerprint, the likeliest cause first."""
MOST_REGRESSIONS = 50
"""Newest earlier regressions that are counted."""


@dataclass(frozen=True)
class Cause:
    """One factor that changed since the baseline."""

    factor: str
    differences: tuple[FingerprintDifference, ...]
    regressions: int
    """Earlier regressions of the project in which it changed too."""
    of: int
    """Earlier regressions."""


def changed_factors(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the factors in which two fingerprints differ; parts that only one knows don't count."""
    return [
        factor
        for factor, parts in FACTORS.items()
        if any(part in before and part in after and before[part] != after[part] for part in parts)
    ]


def causes_of(run: Run, baseline: Run) -> list[Cause]:
    """Return what changed since a run's baseline, in the order of `FACTORS`. Up to three queries.

    Scenarios did not where only the tool's own files in their fixtures changed. Expects both runs' guidance to be loaded.
    """
    changed = changed_factors(baseline.fingerprint, run.fingerprint)
    if SCENARIOS in changed and only_tool_changed(baseline, run):
        changed.remove(SCENARIOS)
    rows = {row.label: row for row in fingerprint_differences(baseline, run)}
    counts, of = _earlier(run)
    return [
        Cause(
            factor,
            tuple(rows[LABELS[part]] for part in FACTORS[factor] if LABELS.get(part) in rows),
            counts[factor],
            of,
        )
        for factor in changed
    ]


def _earlier(run: Run) -> tuple[Counter[str], int]:
    """Return how often each factor changed in the project's earlier regressions, and their number."""
    regressed = Run.objects.filter(
        project=run.project_id, verdict=ChangeVerdict.REGRESSED, pk__lt=run.pk, baseline__isnull=False
    ).order_by("-pk")
    pairs = list(regressed.values_list("baseline__fingerprint", "fingerprint")[:MOST_REGRESSIONS])
    return Counter(factor for pair in pairs for factor in changed_factors(*pair)), len(pairs)

"""Store the comparison of two versions of guidance until one of its runs or the project's smallest effects change."""

from __future__ import annotations

import hashlib

import msgspec

from runs.compare.guidance.guidance_runs import ChosenRuns
from runs.models import GuidanceComparison
from scenarios.models import Guidance

FORM = 1
"""The form of the stored content; a release that changes it counts up."""


def basis_of(chosen: ChosenRuns) -> str:
    """Return a hash of what a comparison is computed from."""
    project = chosen.after[0].project
    sides = [[(run.pk, run.measured) for run in side] for side in (chosen.before, chosen.after)]
    parts = (FORM, sides, project.smallest_effect, project.smallest_effects)
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def read_comparison(before: Guidance, after: Guidance, basis: str) -> bytes | None:
    """Return the stored content; None if there is none of this basis. One query."""
    rows = GuidanceComparison.objects.filter(before=before, after=after, basis=basis)
    found = rows.values_list("content", flat=True).first()
    return None if found is None else bytes(found)


def write_comparison(before: Guidance, after: Guidance, basis: str, content: bytes) -> None:
    """Store a comparison, unless somebody stored it first. One query."""
    row = GuidanceComparison(before=before, after=after, basis=basis, content=content)
    GuidanceComparison.objects.bulk_create([row], ignore_conflicts=True)

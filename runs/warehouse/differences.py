"""What differs between the fingerprints of two runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs.models import Run

LABELS = {
    "suite_version": "Suite version",
    "suite_sha256": "Suite",
    "fixture": "Fixture",
    "guidance": "Guidance",
    "rubric": "Rubric",
    "tool_version": "Tool",
    "tool": "Tool",
    "target": "Target",
    "provider": "Provider",
    "provider_version": "Provider's program",
    "model": "Model",
    "judge": "Judge",
    "threshold": "Passes from",
    "evalhub": "evalhub",
    "sandbox": "Sandbox",
}
HASHES = frozenset(("suite_sha256", "fixture", "guidance", "rubric"))
DIGITS = 8


@dataclass(frozen=True)
class Difference:
    """One part of the fingerprint, before and after; `same` where it did not change."""

    label: str
    before: str
    after: str

    @property
    def same(self) -> bool:
        return self.before == self.after


def fingerprint_parts(run: Run) -> list[tuple[str, str]]:
    """Return the parts of a run's fingerprint that are known, each with its name for people."""
    told = [(LABELS[name], _said(name, run)) for name in LABELS if name in run.fingerprint]
    return [(label, text) for label, text in told if text]


def fingerprint_rows(before: Run, after: Run) -> list[Difference]:
    """Return every part of two runs' fingerprints, what differs first. Expects their guidance to be loaded."""
    names = [name for name in LABELS if name in before.fingerprint or name in after.fingerprint]
    rows = [_row(name, before, after) for name in names]
    return sorted(rows, key=lambda row: row.same)


def fingerprint_differences(before: Run, after: Run) -> list[Difference]:
    """Return what two runs' fingerprints differ in."""
    return [row for row in fingerprint_rows(before, after) if not row.same]


def _row(name: str, before: Run, after: Run) -> Difference:
    return Difference(LABELS[name], _said(name, before), _said(name, after))


def _said(name: str, run: Run) -> str:
    fingerprint: Mapping[str, Any] = run.fingerprint
    value = str(fingerprint.get(name) or "")
    if name not in HASHES:
        return value
    short = value[:DIGITS]
    return f"{run.guidance} {short}" if name == "guidance" and run.guidance else short

"""Say of trials without an outcome why they have none, for test reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CANCELLED = "Cancelled before it finished."


def error_of_unmeasured(run: Mapping[str, Any], trial: Mapping[str, Any]) -> str:
    """Return the error that kept a trial from running, if its run measured nothing; else empty.

    A viewer shows skipped tests as green, which would hide that nothing was measured.
    """
    if trial["outcome"] or run["passed"] or run["failed"]:
        return ""
    return str(trial["error"] or run["error"])


def reason_without_outcome(trial: Mapping[str, Any]) -> str:
    """Return why a trial has no outcome."""
    return str(trial["error"]) or (CANCELLED if trial["state"] == "cancelled" else f"It is {trial['state']}.")

"""Runs to compare on pages."""

from __future__ import annotations

from typing import Any

from runs.models import Run
from tests.builders import close, make_run, make_trials

KEYS = ("create", "export", "list")


def ran(version: Any, *failing: str, keys: tuple[str, ...] = KEYS, trials: int = 1, **changes: Any) -> Run:
    """Return a closed run whose trials passed but those of the failing scenarios."""
    run = make_run(version, **changes)
    make_trials(run, {key: ["fail" if key in failing else "pass"] * trials for key in keys})
    return close(run)

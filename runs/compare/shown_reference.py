"""Read and describe the reference of a stored verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evalhub.lib.numbers import counted
from runs.models import Run
from runs.results.rates import run_rate


@dataclass(frozen=True)
class ShownRun:
    """A run that a verdict was made with."""

    run: Run
    changed_later: bool
    """Its results changed after the verdict."""

    @property
    def pass_rate(self) -> float | None:
        """From 0 to 1; None if none of its trials passed or failed."""
        rate = run_rate(self.run)
        return rate.share if rate.n else None


@dataclass(frozen=True)
class ShownReference:
    """What a stored verdict was made with."""

    runs: tuple[ShownRun, ...]
    """The runs of the line, newest first; empty if the baseline alone is it."""
    gone: int
    """Runs of the line that were deleted since."""
    best_of: int
    """Among how many runs the pinned one is the best, so that others look worse than they are; 0 if it isn't."""

    @property
    def has_changed(self) -> bool:
        """Whether one of its runs changed or was deleted after the verdict."""
        return bool(self.gone) or any(each.changed_later for each in self.runs)


def shown_reference(run: Run) -> ShownReference | None:
    """Return the reference of a run's verdict; None without a verdict and in runs of older releases. One query."""
    stored = run.old_side
    if not stored:
        return None
    keys, compared = stored["runs"], datetime.fromisoformat(stored["compared"])
    runs = Run.objects.in_bulk(keys) if keys else {}
    shown = [runs[key] for key in keys if key in runs]
    return ShownReference(
        tuple(ShownRun(each, bool(each.rollups_at and each.rollups_at > compared)) for each in shown),
        len(keys) - len(shown),
        stored["best_of"],
    )


def reference_words(stored: Mapping[str, Any], baseline: int | None) -> str:
    """Return the name of a verdict's reference, such as `its line of 10 runs` or `run 7`, from `Run.old_side`."""
    if runs := len(stored.get("runs", ())):
        return f"its line of {counted(runs, 'run')}"
    return f"{'the pinned ' if stored.get('is_pinned') else ''}run {baseline}"


def since_words(stored: Mapping[str, Any]) -> str:
    """Return since when a regression is undecided, such as ` since run 6`, or of a calm run how far its line has fallen.

    Empty where neither is known.
    """
    if since := stored.get("since"):
        return f" since run {since}"
    if not (fell := stored.get("fell")):
        return ""
    days = fell["days"]
    ago = "a month ago" if 25 <= days <= 35 else f"{counted(days, 'day')} ago" if days else "its oldest runs"
    return f", {fell['by'] * 100:.0f} points below {ago}"


def reference_json(run: Run) -> dict[str, Any] | None:
    """Return the reference of a run's verdict for REST; None without a verdict."""
    stored = run.old_side
    return {name: stored[name] for name in ("runs", "since", "is_pinned", "compared")} if stored else None

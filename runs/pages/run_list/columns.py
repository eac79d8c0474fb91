"""The columns that the runs page can show."""

from __future__ import annotations

from collections.abc import Sequence

COLUMNS = {
    "tool": "Tool, guidance",
    "interval": "95 % interval",
    "verdict": "Verdict",
    "judge": "Judge",
    "first_try": "First-try",
    "cost": "Cost",
    "tokens": "Tokens",
    "time": "Time",
    "started": "Started, by",
    "branch": "Branch, commit",
    "tags": "Tags",
}
"""Labels of the columns that can be hidden, in their order."""
DEFAULT = ("tool", "interval", "verdict", "judge", "first_try", "cost", "time", "started", "tags")


def shown_columns(chosen: Sequence[str]) -> list[str]:
    """Return the columns to show, in the table's order; the default ones if none that exists is chosen."""
    wanted = {*chosen} & COLUMNS.keys() or {*DEFAULT}
    return [name for name in COLUMNS if name in wanted]

"""How the ends of commands are known, in short texts."""

from __future__ import annotations

from evalhub.lib.numbers import counted
from runs.results.layer_totals import EndTotals


def ends_texts(ends: EndTotals) -> list[str]:
    """Return what a reader must know of these ends; nothing where every end is known and every call counts."""
    found = []
    if ends.known < ends.commands:
        found.append(f"{ends.known:,} of {ends.commands:,} ends known")
    if ends.estimated:
        found.append(f"{ends.estimated:,} estimated from text")
    if ends.not_run:
        found.append(f"{ends.not_run:,} not run")
    found += [f"and {counted(n, 'call')} by {program}" for program, n in ends.indirect_by.items()]
    return found

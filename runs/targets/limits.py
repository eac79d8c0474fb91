"""How long an agent may take, as far as it is known without a worker's variables."""

from __future__ import annotations

from collections.abc import Mapping

from evaluators.model import Json
from runs.targets.entries import Entry, reference
from scenarios.formats.positions import Document, Positions


def agent_limit(definition: Mapping[str, Json], asked: float) -> float | None:
    """Return the seconds that a target's agent may take where its trial allows `asked`: the tighter limit holds.

    None where the target's own limit stands in a variable, which only workers know, or cannot be read.
    """
    entry = dict(definition)
    own = Entry(Document("target", entry, Positions()), (), entry).fields().get("timeout_seconds")
    if own is None:
        return asked
    if reference(own) or not isinstance(own, int | float | str):
        return None
    try:
        return min(asked, float(own))
    except ValueError:
        return None

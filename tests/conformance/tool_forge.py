"""Translates the cases of tool-forge to the functions that the product itself uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

AREAS: dict[str, Callable[[Any], Any]] = {}

PENDING = frozenset(
    {
        "tool_forge.baseline",
        "tool_forge.case",
        "tool_forge.descriptionHash",
        "tool_forge.load",
        "tool_forge.staleness",
        "tool_forge.stats.wilson",
        "tool_forge.stub.loop",
        "tool_forge.token",
    }
)

"""Definitions of targets as runs used them: an edited target is another one for results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.models import Target, TargetVersion
from scenarios.hashing import content_hash

NO_RESULT = frozenset(("name", "workers"))
"""What no result depends on: what the target is called, and how many trials it does at once."""


def definition_hash(definition: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what results depend on in a target's entry."""
    return content_hash({name: value for name, value in definition.items() if name not in NO_RESULT})


def version_of(target: Target) -> TargetVersion:
    """Return the kept version of a target's definition as it was loaded; one is made where there is none yet."""
    found, _ = TargetVersion.objects.get_or_create(
        target=target,
        sha256=definition_hash(target.definition),
        defaults={"definition": target.definition},
    )
    return found

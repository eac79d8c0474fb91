"""Versions of target definitions: results depend on the definition that a run used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.models import Target, TargetVersion
from scenarios.hashing import content_hash

NO_RESULT = frozenset(("name", "workers", "labels"))
"""Fields that no result depends on: the name, the number of parallel trials and the labels of the worker."""


def definition_hash(definition: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the fields that results depend on."""
    return content_hash({name: value for name, value in definition.items() if name not in NO_RESULT})


def version_of(target: Target) -> TargetVersion:
    """Return the version of a target's current definition; create it if there is none."""
    version, _ = TargetVersion.objects.get_or_create(
        target=target,
        sha256=definition_hash(target.definition),
        defaults={"definition": target.definition},
    )
    return version

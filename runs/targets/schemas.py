"""A target as REST gives it."""

from __future__ import annotations

from typing import Any

from evalhub.lib.timestamps import moment
from evalhub.web.rest.schema import Schema
from evaluators.redaction import redact_json
from runs.models import Target
from runs.targets.definitions import hints_of


class TargetOut(Schema):
    id: int
    name: str
    provider: str
    workers: int | None
    labels: list[str]
    """What its worker must have."""
    accepted: bool
    """False for a proposal that no admin has accepted yet."""
    changed: str
    definition: dict[str, Any] | None
    """As written, with variables unresolved; admins only."""
    hints: list[str]
    """Fields that it ignores, a sentence each."""


def target_json(target: Target, *, whole: bool) -> dict[str, Any]:
    """Return the fields of `TargetOut`; `whole` with its definition, redacted."""
    return {
        "id": target.pk,
        "name": target.name,
        "provider": target.provider,
        "workers": target.workers,
        "labels": target.labels,
        "accepted": target.accepted,
        "changed": moment(target.changed),
        "definition": redact_json(target.definition) if whole else None,
        "hints": [] if target.is_imported else list(hints_of(target.definition)),
    }

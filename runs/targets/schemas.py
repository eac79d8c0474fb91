"""A target as REST gives it."""

from __future__ import annotations

from typing import Any

from ninja import Schema

from evalhub.lib.value import Moment
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
    changed: Moment
    definition: dict[str, Any] | None
    """As written, with variables unresolved; admins only."""
    hints: list[str]
    """Fields that it ignores, a sentence each."""

    @staticmethod
    def resolve_definition(target: Target, context: Any) -> Any:
        return redact_json(target.definition) if context["request"].access.may("manage") else None

    @staticmethod
    def resolve_hints(target: Target) -> tuple[str, ...]:
        return () if target.is_imported else hints_of(target.definition)

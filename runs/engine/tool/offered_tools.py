"""The tools offered to a model, which are never executed."""

from __future__ import annotations

from collections.abc import Mapping

from evaluators.model import Json
from evaluators.statistics.staleness import RegisteredTool, Registry
from runs.targets.language_models.stub_chat import ToolSchema


def tools_of(registry: Registry | None, stubs: Mapping[str, Json]) -> tuple[ToolSchema, ...]:
    """Return the tools offered to a model: the registry's, and stubbed ones outside it."""
    registered = dict(registry.tools) if registry else {}
    unknown = {name: RegisteredTool() for name in stubs if name not in registered}
    return tuple(
        ToolSchema(name, tool.description or "", parameters_of(tool.input_schema))
        for name, tool in {**registered, **unknown}.items()
    )


def parameters_of(schema: Json) -> Json:
    """Return a tool's input as JSON Schema; None if the registry has none.

    Accepts JSON Schema and tool-forge's own form, a mapping of fields with `type`, `description`
    and `optional`.
    """
    if not isinstance(schema, dict) or not schema:
        return None
    if isinstance(schema.get("type"), str) or any(key in schema for key in ("properties", "$ref", "anyOf")):
        return schema
    fields = {name: field for name, field in schema.items() if isinstance(field, dict)}
    return {
        "type": "object",
        "properties": {
            name: {key: value for key, value in field.items() if key != "optional"}
            for name, field in fields.items()
        },
        "required": [name for name, field in fields.items() if not field.get("optional")],
    }

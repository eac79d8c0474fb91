"""The JSON Schema of tool-forge's eval files."""

from __future__ import annotations

from evaluators.grading.assertions.expect import WITHOUT_VALUE, Expect, ToolParam
from scenarios.formats.json_schemas import (
    FileSchema,
    Schema,
    SchemaWriter,
    any_of,
    is_one_of,
    or_empty,
    schema_of_list,
)
from scenarios.formats.tool_forge import GROUPS, TIERS
from scenarios.formats.tool_forge.case_models import CaseFile, Envelope, PerturbationFile
from scenarios.formats.tool_forge.case_reader import GROUP_KEYS, NAME_KEYS, TEXT_GROUP_KEYS, VALUE_KEYS

_SCALAR: Schema = {"type": ["string", "number", "boolean"]}
"""What is compared as text."""


def build_tool_forge_eval_schema() -> Schema:
    """Return the schema of an eval file: an object with cases or groups of them, or a list of cases."""
    writer = SchemaWriter(
        (Envelope, PerturbationFile, CaseFile, Expect, ToolParam), drops_empty=(CaseFile, Expect)
    )
    _add_shapes(writer.of(Expect)["properties"])
    _add_value_rules(writer.of(ToolParam))
    case = writer.reference(CaseFile)
    is_perturbation = any_of(*({"required": [group]} for group in GROUPS))
    root: Schema = {
        "type": ["object", "array"],
        "if": {"type": "array"},
        "then": {"items": case},
        "else": {
            "if": is_perturbation,
            "then": writer.reference(PerturbationFile),
            "else": writer.reference(Envelope),
        },
    }
    cases = or_empty(schema_of_list(case))
    group: Schema = {"if": {"type": "object"}, "then": {"properties": {"cases": cases}}, "else": cases}
    return writer.write(root, case=case, group=group, expect=or_empty(writer.reference(Expect)))


def _add_shapes(properties: dict[str, Schema]) -> None:
    """Let single values replace lists, as `expect_shapes` reads them."""
    for key in NAME_KEYS:
        properties[key] = any_of(properties[key], _item(properties[key]))
    for key in VALUE_KEYS:
        properties[key] = any_of(schema_of_list(_SCALAR), _SCALAR, {"type": "null"})
    for key in GROUP_KEYS:
        item = _SCALAR if key in TEXT_GROUP_KEYS else _item(_item(properties[key]))
        properties[key] = any_of(schema_of_list(any_of(schema_of_list(item), item)), item, {"type": "null"})
    params = properties["toolParams"]
    properties["toolParams"] = any_of(params, _item(params))


def _item(schema: Schema) -> Schema:
    """Return the schema of a list's items."""
    listed = next(each for each in (schema, *schema.get("anyOf", ())) if "items" in each)
    items: Schema = listed["items"]
    return items


def _add_value_rules(param: Schema) -> None:
    """Ask for a value where the assertion compares with one, and for one of several where it chooses."""
    param["allOf"] = [
        {"if": is_one_of("assertion", sorted(WITHOUT_VALUE)), "else": {"required": ["value"]}},
        {
            "if": is_one_of("assertion", ["oneOf"]),
            "then": {"properties": {"value": {"not": {"type": "array", "maxItems": 0}}}},
        },
    ]


SCHEMAS = (
    FileSchema(
        "tool-forge",
        "Eval cases of tool-forge",
        "An eval file of tool-forge: cases with their metadata, groups of rephrased triggers, or a list of cases.",
        tuple(f"*.{tier}.json" for tier in TIERS),
        build_tool_forge_eval_schema,
    ),
)

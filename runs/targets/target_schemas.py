"""The JSON Schema of targets files, from the options of every kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic_core import core_schema

from evaluators.transcripts import PARSERS
from runs.targets.entries import NESTED_IN, OF_ENTRY, VARIABLE_REFERENCE
from runs.targets.providers.healthcheck import CommandHealthcheck, HttpHealthcheck
from runs.targets.providers.options import Options, camel_case
from runs.targets.providers.registry import ALIASES, OPTIONS
from scenarios.formats.json_schemas import (
    NOT_EMPTY,
    FileSchema,
    ModelSchemas,
    Schema,
    SchemaWriter,
    any_of,
    has,
    make_reference,
    or_also,
    or_empty,
    schema_by_kind,
    schema_of_list,
    spell_keys,
)
from scenarios.formats.upload import TARGETS_FILES

_NUMBER = r"^\s*[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$"
_WHOLE = r"^\s*[-+]?\d[\d_]*(?:\.0*)?\s*$"
_YES_OR_NO = ("true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "1", "0")
_MIXED = r"^[A-Z]|-.*[A-Z_]|_.*[A-Z-]|[A-Z]{2}"
"""Matches keys in a spelling that evalhub reads and that the schema doesn't list, such as `Command-Template`."""


class _ConvertingSchemas(ModelSchemas):
    """The schemas of models that convert values: a number in quotes is one, and a number is text."""

    def int_schema(self, schema: core_schema.IntSchema) -> Schema:
        json_schema = super().int_schema(schema)
        return (
            json_schema
            if schema.get("strict")
            else any_of(json_schema, {"type": "string", "pattern": _WHOLE})
        )

    def float_schema(self, schema: core_schema.FloatSchema) -> Schema:
        return any_of(super().float_schema(schema), {"type": "string", "pattern": _NUMBER})

    def bool_schema(self, schema: core_schema.BoolSchema) -> Schema:
        words = [
            spelling for word in _YES_OR_NO for spelling in dict.fromkeys((word, word.title(), word.upper()))
        ]
        return any_of(super().bool_schema(schema), {"enum": [0, 1, *words]})

    def str_schema(self, schema: core_schema.StringSchema) -> Schema:
        return {**super().str_schema(schema), "type": ["string", "number"]}

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> Schema:
        discriminator = super().tagged_union_schema(schema)["discriminator"]
        kinds = {kind: {"$ref": reference} for kind, reference in discriminator["mapping"].items()}
        return schema_by_kind(kinds, key=discriminator["propertyName"])


def targets_schema() -> Schema:
    """Return the schema of a targets file."""
    checks = (HttpHealthcheck, CommandHealthcheck)
    writer = SchemaWriter((*OPTIONS.values(), *checks), generator=_ConvertingSchemas)
    for model in checks:
        spell_keys(writer.of(model), _as_written({name: (name,) for name in model.model_fields}))
    fields = {kind: _fields(OPTIONS[kind], writer.of(OPTIONS[kind])["properties"]) for kind in OPTIONS}
    values, references = _share(fields)
    kinds: dict[str, Schema] = {}
    for kind, options in OPTIONS.items():
        kinds[kind], kinds[f"settings.{kind}"] = _entry(kind, references[kind], writer.of(options))
    root: Schema = {
        "type": "object",
        "required": ["targets"],
        "properties": {"targets": schema_of_list(_any_entry(), minItems=1)},
    }
    reference: Schema = {
        "type": "string",
        "pattern": VARIABLE_REFERENCE,
        "description": "A variable of the worker: `${{ NAME }}`.",
    }
    return writer.write(root, reference=reference, **values, **kinds)


def _any_entry() -> Schema:
    """Return the schema of an entry, which its provider chooses. One in an unusual spelling is not checked."""
    conditions = [
        {"if": {"properties": {"provider": {"pattern": _ignoring_case(kind)}}}, "then": make_reference(kind)}
        for kind in OPTIONS
    ]
    names = [*OPTIONS, *ALIASES]
    provider = any_of({"enum": names}, {"pattern": "|".join(map(_ignoring_case, OPTIONS))})
    checked: Schema = {
        "type": "object",
        "required": ["provider"],
        "properties": {"provider": {"type": "string", **provider}},
        "allOf": conditions,
    }
    in_other_place: Schema = {
        "not": {"required": ["provider"]},
        "anyOf": [{"required": [key]} for key in NESTED_IN],
    }
    is_mixed: Schema = {"not": {"propertyNames": {"not": {"pattern": _MIXED}}}}
    unchecked: Schema = {"type": "object", **any_of(in_other_place, is_mixed)}
    return {"if": unchecked, "else": checked}


def _share(
    fields: Mapping[str, Mapping[str, Schema]],
) -> tuple[dict[str, Schema], dict[str, dict[str, Schema]]]:
    """Return the schemas of all fields by a name of their own, and each kind's references to them."""
    values: dict[str, Schema] = {}
    references: dict[str, dict[str, Schema]] = {kind: {} for kind in fields}
    for kind, schemas in fields.items():
        for name, schema in schemas.items():
            shared = values.setdefault(f"field.{name}", schema) == schema
            definition = f"field.{name}" if shared else f"field.{kind}.{name}"
            values[definition] = schema
            references[kind][name] = make_reference(definition)
    return values, references


def _entry(kind: str, fields: Mapping[str, Schema], model: Schema) -> tuple[Schema, Schema]:
    """Return the schema of an entry of one kind, and of its fields under `settings`.

    An editor offers names in snake_case; others fit, too.
    """
    options: type[Options] = OPTIONS[kind]
    spellings = {name: keys for name, keys in options.spellings().items() if name in fields}
    properties = {key: fields[name] for name, keys in spellings.items() for key in keys}
    properties |= {key: or_empty(NOT_EMPTY) for key in sorted(OF_ENTRY)}
    properties |= {"runtime": {"enum": ["host", None]}, "provider": {"type": "string"}}
    others = {
        name: [key for key in keys if key not in properties] for name, keys in _as_written(spellings).items()
    }
    patterns = {f"^(?:{'|'.join(keys)})$": fields[name] for name, keys in others.items() if keys}
    inner: Schema = {
        "type": ["object", "null"],
        "properties": properties,
        "patternProperties": patterns,
        "additionalProperties": False,
    }
    required = [
        _somewhere(_as_written(spellings)[name])
        for name, field in options.model_fields.items()
        if field.is_required()
    ]
    return {
        "description": model.get("description", ""),
        "type": "object",
        "properties": {**properties, **dict.fromkeys(NESTED_IN, make_reference(f"settings.{kind}"))},
        "patternProperties": patterns,
        "additionalProperties": False,
        "allOf": [_somewhere(("name", "label", "id")), *required],
    }, inner


def _fields(options: type[Options], properties: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the schema of each field that a kind uses; in the place of most values, a variable may stand."""
    schemas: dict[str, Schema] = {}
    for name, spellings in options.spellings().items():
        if name in options.unused_fields:
            continue
        schema = next(properties[key] for key in (*spellings, name) if key in properties)
        if name == "parser" and options is OPTIONS["cli"]:
            schema = {"enum": list(PARSERS)} | {key: schema[key] for key in ("description",) if key in schema}
        if name in options.secret_fields:
            schema = make_reference("reference")
        elif name != "labels":
            schema = or_also(schema, make_reference("reference"))
        schemas[name] = or_empty(schema)
    return schemas


def _as_written(spellings: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return every field's names in snake_case, camelCase and kebab-case."""
    return {
        name: tuple(
            dict.fromkeys(
                spelling for word in names for spelling in (word, camel_case(word), word.replace("_", "-"))
            )
        )
        for name, names in spellings.items()
    }


def _somewhere(keys: Iterable[str]) -> Schema:
    """Return a condition: one of these keys has a value, in the entry or where fields may stand, too."""
    has_value = has(*keys)
    options = has_value.get("anyOf", [has_value])
    inside: list[Schema] = [
        {"required": [key], "properties": {key: {"type": "object", **any_of(*options)}}} for key in NESTED_IN
    ]
    return any_of(*options, *inside)


def _ignoring_case(kind: str) -> str:
    """Return a pattern of a kind's names."""
    names = [kind, *(alias for alias, target in ALIASES.items() if target == kind)]
    letters = (
        "".join(f"[{each}{each.upper()}]" if each.isalpha() else each for each in name) for name in names
    )
    return rf"^\s*(?:{'|'.join(letters)})\s*$"


SCHEMAS = (
    FileSchema(
        "targets",
        "Targets",
        "A targets file: who does the tasks, and who judges.",
        TARGETS_FILES,
        targets_schema,
    ),
)

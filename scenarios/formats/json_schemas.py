"""Write the JSON Schema of a file format from the models that read it.

A model shows what it reads by itself. What its reader does besides is declared where the reader is: `reads_as` marks a
field that another reader takes, `drops_empty` names models whose keys may be empty, and a format's module `schemas`
adds what the reader's tables say.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import core_schema

from scenarios.formats.parsed import READS_AS

Schema = dict[str, Any]
Models = Iterable[type[BaseModel]]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
NOT_EMPTY: Schema = {"type": "string", "pattern": r"\S"}
"""Text with a character that isn't a space."""


@dataclass(frozen=True)
class FileSchema:
    """The JSON Schema of one kind of file."""

    name: str
    """As in the address `/schemas/<name>.json`."""
    title: str
    files: str
    """Which files it is for, in a sentence."""
    patterns: tuple[str, ...]
    """Paths of such files, as editors and language servers match them."""
    build: Callable[[], Schema]
    """Returns the schema without its name."""

    def document(self) -> Schema:
        """Return the whole schema; its `$id` is relative to the folder of schemas."""
        content = self.build()
        described = f"{self.files} {content.pop('description', '')}".strip()
        return {
            "$schema": DIALECT,
            "$id": f"{self.name}.json",
            "title": self.title,
            "description": described,
            **content,
        }


class ModelSchemas(GenerateJsonSchema):
    """Pydantic's generator, with docstrings of fields, every spelling of a key, and keys that may be empty."""

    drops_empty: ClassVar[tuple[type[BaseModel], ...]] = ()
    """Models whose reader removes keys without a value; with `BaseModel`, in every mapping."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return that a field has no title: its key is one."""
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        """Return the schema of a model."""
        json_schema = super().model_schema(schema)
        json_schema.pop("title", None)
        model = schema["cls"]
        if "properties" in json_schema:
            _describe_fields(json_schema, model)
            if issubclass(model, self.drops_empty):
                for key in json_schema["properties"].keys() - set(json_schema.get("required", ())):
                    json_schema["properties"][key] = or_empty(json_schema["properties"][key])
            _add_spellings(json_schema, model)
        return json_schema

    def dict_schema(self, schema: core_schema.DictSchema) -> Schema:
        """Return the schema of a mapping."""
        json_schema = super().dict_schema(schema)
        if BaseModel in self.drops_empty and isinstance(json_schema.get("additionalProperties"), dict):
            json_schema["additionalProperties"] = or_empty(json_schema["additionalProperties"])
        return json_schema


class SchemaWriter:
    """Holds the schemas of a format's models, and writes one schema from them."""

    def __init__(
        self,
        models: Models,
        *,
        drops_empty: tuple[type[BaseModel], ...] = (),
        generator: type[ModelSchemas] = ModelSchemas,
    ) -> None:
        configured = type("Schemas", (generator,), {"drops_empty": drops_empty})
        pairs: list[tuple[type[BaseModel], Any]] = [(model, "validation") for model in dict.fromkeys(models)]
        references, document = models_json_schema(pairs, schema_generator=configured)
        self.names = {model: str(each["$ref"]).rpartition("/")[2] for (model, _), each in references.items()}
        self.definitions: dict[str, Schema] = document["$defs"]

    def reference(self, model: type[BaseModel]) -> Schema:
        """Return a reference to a model."""
        return make_reference(self.names[model])

    def of(self, model: type[BaseModel]) -> Schema:
        """Return the schema of a model, to change it."""
        return self.definitions[self.names[model]]

    def write(self, root: Schema | type[BaseModel], **parts: Schema) -> Schema:
        """Return a schema with all that it refers to. `parts` are what `reads_as` names."""
        top = self.of(root) if isinstance(root, type) else root
        sources = {**self.definitions, **parts}
        definitions: dict[str, Schema] = {}
        top = _resolve(top)
        queue = list(_references(top))
        while queue:
            name = queue.pop()
            if name not in definitions:
                definitions[name] = _resolve(sources[name])
                queue += _references(definitions[name])
        return {**top, **({"$defs": dict(sorted(definitions.items()))} if definitions else {})}


def make_reference(name: str) -> Schema:
    """Return a reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def any_of(*schemas: Schema) -> Schema:
    """Return the schema of values that one of these fits."""
    return {"anyOf": list(schemas)}


def schema_of_list(item: Schema, **more: Any) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": item, **more}


def or_also(schema: Schema, other: Schema) -> Schema:
    """Return a schema with an alternative; description and default stay outside."""
    outside = {key: schema[key] for key in ("description", "default") if key in schema}
    inside = {key: value for key, value in schema.items() if key not in outside}
    options = inside["anyOf"] if inside.keys() == {"anyOf"} else [inside]
    return {**any_of(*options, other), **outside}


def or_empty(schema: Schema) -> Schema:
    """Return a schema that also fits a key without a value."""
    takes_null = "null" in schema.get("type", ()) or {"type": "null"} in schema.get("anyOf", ())
    if takes_null or not schema.keys() - {"description"}:
        return schema
    if isinstance(schema.get("type"), str) and not {"enum", "const"} & schema.keys():
        return {**schema, "type": [schema["type"], "null"]}
    return or_also(schema, {"type": "null"})


def has(*keys: str) -> Schema:
    """Return a condition: one of these keys has a value."""
    conditions = [{"required": [key], "properties": {key: {"not": {"type": "null"}}}} for key in keys]
    return conditions[0] if len(conditions) == 1 else any_of(*conditions)


def is_one_of(key: str, values: Sequence[Any]) -> Schema:
    """Return a condition: a key has one of these values."""
    return {"required": [key], "properties": {key: {"enum": list(values)}}}


def schema_by_kind(kinds: Mapping[str, Schema], *, key: str = "type") -> Schema:
    """Return the schema of mappings whose kind, the value of a key, decides what else is in them.

    Conditions rather than alternatives, so that an editor names the one thing that is wrong.
    """
    groups: dict[str, list[str]] = {}
    for kind, schema in kinds.items():
        groups.setdefault(repr(schema), []).append(kind)
    conditions = [
        {"if": is_one_of(key, names), "then": copy.deepcopy(kinds[names[0]])} for names in groups.values()
    ]
    return {
        "type": "object",
        "required": [key],
        "properties": {key: {"enum": list(kinds)}},
        "allOf": conditions,
    }


def spell_keys(schema: Schema, spellings: Mapping[str, Sequence[str]]) -> None:
    """Give a mapping's keys all their spellings. A required key may then have any of them."""
    properties, required = schema["properties"], schema.get("required", [])
    for name, names in spellings.items():
        if name not in properties:
            continue
        property_schema = or_empty(properties.pop(name)) if name not in required else properties.pop(name)
        properties.update({each: copy.deepcopy(property_schema) for each in names})
        if name in required:
            required.remove(name)
            schema.setdefault("allOf", []).append(has(*names))
    if not required:
        schema.pop("required", None)


def _describe_fields(json_schema: Schema, model: type[BaseModel]) -> None:
    """Add the docstrings of fields, and remove defaults that say nothing."""
    docstrings = _docstrings(model)
    for name, field in model.model_fields.items():
        key = _spellings(name, field)[0]
        if key not in json_schema["properties"]:
            continue
        schema: Schema = json_schema["properties"][key]
        if schema.get("default", 0) in (None, "") or isinstance(schema.get("default"), dict | list):
            del schema["default"]
        if name in docstrings:
            json_schema["properties"][key] = {"description": docstrings[name], **schema}


def _add_spellings(json_schema: Schema, model: type[BaseModel]) -> None:
    choices = {name: _spellings(name, field) for name, field in model.model_fields.items()}
    spell_keys(json_schema, {names[0]: names for names in choices.values() if len(names) > 1})


def _spellings(name: str, field: FieldInfo) -> tuple[str, ...]:
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(choice for choice in alias.choices if isinstance(choice, str))
    return (alias if isinstance(alias, str) else name,)


@cache
def _docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the docstrings of a model's fields, its own and inherited ones; none without its source."""
    docstrings: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, BaseModel) and cls is not BaseModel:
            docstrings |= dict(_docstrings_of(cls))
    return docstrings


def _docstrings_of(cls: type) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, SyntaxError):
        return
    (definition,) = tree.body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    for field, after in pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            yield field.target.id, inspect.cleandoc(str(after.value.value))


def _resolve(schema: Any) -> Any:
    """Return a schema with references in place of what `reads_as` marks."""
    if isinstance(schema, list):
        return [_resolve(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: _resolve(value) for key, value in schema.items() if key != READS_AS}
    return {**make_reference(schema[READS_AS]), **rest} if READS_AS in schema else rest


def _references(schema: Any) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to."""
    if isinstance(schema, list):
        for part in schema:
            yield from _references(part)
    elif isinstance(schema, dict):
        if isinstance(name := schema.get("$ref"), str):
            yield name.removeprefix("#/$defs/")
        for part in schema.values():
            yield from _references(part)

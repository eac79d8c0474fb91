"""What an MCP server shows to agents, its instructions and tools, and whether arguments fit a tool's schema."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from evaluators.exposure import estimated_tokens
from evaluators.model import Json
from evaluators.patterns import PatternError, compile_pattern

MOST_PROBLEMS = 20
MOST_REFERENCES = 10_000
"""References of a schema that are followed for one call."""


class McpTool(Struct, frozen=True, omit_defaults=True):
    """One tool of `tools/list`."""

    name: str
    description: str = ""
    schema: dict[str, Json] = {}
    """Its `inputSchema`."""

    @property
    def tokens(self) -> int:
        """An estimate from the number of characters, as compact JSON."""
        return estimated_tokens(msgspec.json.encode(self).decode())

    @property
    def text(self) -> str:
        """Return description and schema as text for people."""
        return (
            f"{self.description}\n\n{json.dumps(self.schema, indent=2, ensure_ascii=False, sort_keys=True)}\n"
        )


class McpSurface(Struct, frozen=True, omit_defaults=True):
    """Everything of a server that an agent's model reads before its first call."""

    server: str
    version: str = ""
    """The server's own."""
    instructions: str = ""
    tools: tuple[McpTool, ...] = ()

    def schema(self, tool: str) -> dict[str, Json] | None:
        """Return the schema of a tool's arguments; None if there is no such tool."""
        return next((each.schema for each in self.tools if each.name == tool), None)

    @property
    def documents(self) -> dict[str, str]:
        """Return instructions and tools as texts by name."""
        own = {f"{self.server}: instructions": self.instructions} if self.instructions else {}
        return own | {f"{self.server}: {each.name}": each.text for each in self.tools}

    @property
    def tokens(self) -> int:
        """The tokens of tools and instructions."""
        instructions = estimated_tokens(self.instructions) if self.instructions else 0
        return instructions + sum(each.tokens for each in self.tools)


def surface_of(server: str, answer: Mapping[str, Json]) -> McpSurface:
    """Return the surface in a listing: `tools`, `instructions` and `serverInfo` as MCP names them."""
    about = answer.get("serverInfo")
    tools = [each for each in answer.get("tools") or () if isinstance(each, dict) and each.get("name")]
    return McpSurface(
        server,
        str((about if isinstance(about, dict) else {}).get("version") or ""),
        str(answer.get("instructions") or ""),
        tuple(sorted(map(_tool, tools), key=lambda tool: tool.name)),
    )


def _tool(each: Mapping[str, Json]) -> McpTool:
    schema = each.get("inputSchema")
    return McpTool(
        str(each["name"]), str(each.get("description") or ""), schema if isinstance(schema, dict) else {}
    )


def encoded(surfaces: Sequence[McpSurface]) -> str:
    """Return surfaces as stored: equal surfaces are equal texts."""
    return msgspec.json.encode(surfaces, order="deterministic").decode()


def decoded(text: str) -> tuple[McpSurface, ...]:
    """Return the surfaces in a text of `encoded`."""
    return msgspec.json.decode(text, type=tuple[McpSurface, ...])


class ArgumentProblemKind(StrEnum):
    """How arguments differ from a schema."""

    UNKNOWN = "unknown"
    MISSING = "missing"
    VALUE = "value"


class ArgumentProblem(Struct, frozen=True):
    """One argument that doesn't fit."""

    kind: ArgumentProblemKind
    name: str
    expected: str = ""
    """What its value must be, for a wrong value."""


def argument_problems(schema: Mapping[str, Json], arguments: Json) -> list[ArgumentProblem]:
    """Return why arguments don't fit a JSON schema (2020-12); nothing where the schema itself is broken or takes too long."""
    # Imported here because it takes a tenth of a second and few trials need it.
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        errors = _validator(schema).iter_errors(arguments)
        # A schema's error of several missing keys comes once for each of them.
        return list(dict.fromkeys(problem for error in errors for problem in _problems(error)))[
            :MOST_PROBLEMS
        ]
    except (SchemaError, Unresolvable, RecursionError, TypeError, ValueError, AttributeError):
        # The author's mistake, not the agent's.
        return []


def _validator(schema: Mapping[str, Json]) -> Any:
    """Return a validator within limits, because the schema is the tool's: no regular expression, reference or comparison of
    all pairs can take long, and nothing is fetched.
    """
    from jsonschema import Draft202012Validator, validators
    from jsonschema.exceptions import ValidationError
    from referencing import Registry

    standard: dict[str, Any] = Draft202012Validator.VALIDATORS
    followed = itertools.count()

    def reference(validator: Any, ref: Json, instance: Json, of: Json) -> Iterator[Any]:
        if next(followed) >= MOST_REFERENCES:
            raise ValueError("too many references")
        yield from standard["$ref"](validator, ref, instance, of)

    def pattern(validator: Any, text: Json, instance: Json, of: Json) -> Iterator[Any]:
        try:
            if isinstance(instance, str) and not compile_pattern(str(text)).search(instance):
                yield ValidationError(f"{instance!r} does not match {text!r}")
        except PatternError:
            return

    def additional(validator: Any, value: Json, instance: Json, of: Json) -> Iterator[Any]:
        # With patternProperties, it would search for their expressions.
        if "patternProperties" not in of:
            yield from standard["additionalProperties"](validator, value, instance, of)

    own = {
        "$ref": reference,
        "$dynamicRef": _unchecked,
        "pattern": pattern,
        "additionalProperties": additional,
    }
    own |= dict.fromkeys(
        ("patternProperties", "unevaluatedProperties", "unevaluatedItems", "uniqueItems"), _unchecked
    )
    extend: Any = validators.extend
    kind = extend(Draft202012Validator, own)
    Draft202012Validator.check_schema(schema)
    return kind(schema, registry=Registry())


def _unchecked(validator: Any, value: Json, instance: Json, schema: Json) -> Iterator[Any]:
    """Leave a keyword unchecked."""
    yield from ()


def _problems(error: Any) -> Iterator[ArgumentProblem]:
    place = ".".join(str(each) for each in error.absolute_path)
    if error.validator == "required":
        names = [name for name in error.validator_value if name not in error.instance]
        yield from (ArgumentProblem(ArgumentProblemKind.MISSING, _joined(place, name)) for name in names)
    elif error.validator == "additionalProperties":
        known = (error.schema.get("properties") or {}).keys()
        for name in error.instance.keys() - known:
            yield ArgumentProblem(ArgumentProblemKind.UNKNOWN, _joined(place, name))
    else:
        yield ArgumentProblem(ArgumentProblemKind.VALUE, place, _expected(error))


def _joined(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _expected(error: Any) -> str:
    value = error.validator_value
    if error.validator == "type":
        return " or ".join(value) if isinstance(value, list) else str(value)
    if error.validator == "enum":
        return "one of " + ", ".join(map(str, value))
    return f"{error.validator} {value}" if isinstance(value, str | int | float) else str(error.validator)

"""What an MCP server shows to agents, its instructions and tools, and whether arguments fit a tool's schema."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
MOST_STEPS = 200_000
"""Steps of one call's check: keywords with the entries that they go through, and errors."""
_COMPARED = 20
"""Values that are compared in one step."""
_WRITTEN = 100
"""Characters of errors and patterns' texts that count as one step."""


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
        errors = _validator(_without_dialects(schema)).iter_errors(arguments)
        problems = (problem for error in errors for problem in _problems(error))
        # A schema's error of several missing keys comes once for each of them.
        return list(itertools.islice(_distinct(problems), MOST_PROBLEMS))
    except (
        SchemaError,
        Unresolvable,
        RecursionError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
    ):
        # The author's mistake, not the agent's.
        return []


def _without_dialects(value: Json) -> Json:
    """Return a schema without `$schema`, which would make jsonschema check that part without limits."""
    if isinstance(value, list):
        return [_without_dialects(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: _without_dialects(each)
        for key, each in value.items()
        if key != "$schema" or not isinstance(each, str)
    }


def _distinct(problems: Iterable[ArgumentProblem]) -> Iterator[ArgumentProblem]:
    seen = set()
    for each in problems:
        if each not in seen:
            seen.add(each)
            yield each


class _Steps:
    """Counts the steps of one check, because the schema's size multiplies with that of the arguments."""

    def __init__(self) -> None:
        self.left = MOST_STEPS

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise ValueError("too many steps")

    def counted(self, check: Any, *, compared: bool = False) -> Any:
        """Return a keyword's check that counts its steps; `compared` if it compares whole values."""

        def checked(validator: Any, value: Json, instance: Json, of: Json) -> Iterator[Any]:
            entries = _length(value)
            self.spend(
                1 + (_size(instance) * entries // _COMPARED if compared else entries + _length(instance))
            )
            for error in check(validator, value, instance, of) or ():
                self.spend(1 + len(error.message) // _WRITTEN)
                yield error

        return checked


def _length(value: Json) -> int:
    """Return the number of entries; 0 for a plain value."""
    return len(value) if isinstance(value, list | dict) else 0


def _size(value: Json) -> int:
    """Return the number of values within, with this one."""
    nested = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, nested))


def _validator(schema: Mapping[str, Json]) -> Any:
    """Return a validator within limits, because the schema is the tool's: no regular expression, reference or comparison of
    all pairs can take long, and nothing is fetched.
    """
    from jsonschema import Draft202012Validator, validators
    from jsonschema.exceptions import ValidationError
    from referencing import Registry

    standard: dict[str, Any] = Draft202012Validator.VALIDATORS
    followed, steps, whole = itertools.count(), _Steps(), _size(dict(schema))
    identified = b'"$id"' in msgspec.json.encode([each for key, each in schema.items() if key != "$id"])

    def reference(validator: Any, ref: Json, instance: Json, of: Json) -> Iterator[Any]:
        if next(followed) >= MOST_REFERENCES:
            raise ValueError("too many references")
        # Anything but a pointer is searched for in the whole schema; so are pointers if parts have an `$id`.
        direct = ref[:2] in ("#", "#/") and not identified
        steps.spend(len(ref) // _WRITTEN if direct else whole)
        yield from standard["$ref"](validator, ref, instance, of)

    def pattern(validator: Any, text: Json, instance: Json, of: Json) -> Iterator[Any]:
        if not isinstance(instance, str):
            return
        steps.spend(len(instance) // _WRITTEN)
        try:
            if not compile_pattern(str(text)).search(instance):
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
    counted = {
        keyword: steps.counted(check, compared=keyword in ("enum", "const"))
        for keyword, check in {**standard, **own}.items()
    }
    kind = extend(Draft202012Validator, counted)
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

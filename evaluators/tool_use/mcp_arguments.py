"""Why a call's arguments don't fit the schema that an MCP server gives, found within limits."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from evalhub.lib.limits import LONGEST_REASON
from evaluators.model import Json
from evaluators.patterns import PatternError, compile_pattern

MOST_PROBLEMS = 20
_WRITTEN = 100
"""Characters of errors and patterns' texts that count as one step."""
_UNCHECKED = (
    "$dynamicRef",
    "patternProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "uniqueItems",
)
"""Keywords that could take long."""


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


def check_schema(schema: Json) -> None:
    """Check that a schema can be applied in full. Raises `ValueError` with a sentence if not."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    if not isinstance(schema, Mapping):
        raise ValueError("A JSON schema must be a mapping")
    if unchecked := sorted(_keywords(schema) & set(_UNCHECKED)):
        raise ValueError(f"The keyword '{unchecked[0]}' of JSON schemas is not supported. Remove it")
    try:
        Draft202012Validator.check_schema(_without_dialects(schema))
    except SchemaError as error:
        raise ValueError(f"This is not a JSON schema: {error.message}") from error


def schema_violations(schema: Mapping[str, Json], value: Json) -> tuple[str, ...]:
    """Return how a value differs from a schema. Raises `ValueError` if that takes too long or a reference is missing."""
    from referencing.exceptions import Unresolvable

    try:
        errors = list(
            itertools.islice(_validator(_without_dialects(schema)).iter_errors(value), MOST_PROBLEMS)
        )
    except (Unresolvable, RecursionError) as error:
        raise ValueError(str(error)) from error
    return tuple(f"{error.json_path}: {error.message[:LONGEST_REASON]}" for error in errors)


def _keywords(schema: Json) -> set[str]:
    """Return all keys of a schema, at any depth."""
    if isinstance(schema, list):
        return set().union(*map(_keywords, schema))
    if not isinstance(schema, Mapping):
        return set()
    return set(schema).union(*map(_keywords, schema.values()))


def _without_dialects(value: Json) -> Json:
    """Return a schema without `$schema`, which would make jsonschema check that part without limits."""
    if isinstance(value, list):
        return [_without_dialects(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: _without_dialects(part)
        for key, part in value.items()
        if key != "$schema" or not isinstance(part, str)
    }


def _distinct(problems: Iterable[ArgumentProblem]) -> Iterator[ArgumentProblem]:
    seen = set()
    for problem in problems:
        if problem not in seen:
            seen.add(problem)
            yield problem


class _Steps:
    """Counts the steps of one check, because the schema's size multiplies with that of the arguments."""

    def __init__(self) -> None:
        # Steps of one call's check: keywords with the entries that they go through, and errors.
        self.left = 200_000

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise ValueError("too many steps")

    def counted(self, check: Any, *, compared: bool = False) -> Any:
        """Return a keyword's check that counts its steps; `compared` if it compares whole values."""

        def checked(validator: Any, value: Json, instance: Json, of: Json) -> Iterator[Any]:
            entries = _length(value)
            # Values that are compared in one step.
            self.spend(1 + (_size(instance) * entries // 20 if compared else entries + _length(instance)))
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


class _Keywords:
    """The checks of keywords that are not jsonschema's own, for one schema and one call's arguments."""

    def __init__(self, schema: Mapping[str, Json], standard: Mapping[str, Any], steps: _Steps) -> None:
        self._standard = standard
        self._steps = steps
        self._followed = itertools.count()
        self._whole = _size(dict(schema))
        parts = [each for key, each in schema.items() if key != "$id"]
        self._has_ids = b'"$id"' in msgspec.json.encode(parts)

    def reference(self, validator: Any, ref: Json, instance: Json, of: Json) -> Iterator[Any]:
        # References of a schema that are followed for one call.
        if next(self._followed) >= 10_000:
            raise ValueError("too many references")
        # Anything but a pointer is searched for in the whole schema; so are pointers if parts have an `$id`.
        direct = ref[:2] in ("#", "#/") and not self._has_ids
        self._steps.spend(len(ref) // _WRITTEN if direct else self._whole)
        yield from self._standard["$ref"](validator, ref, instance, of)

    def pattern(self, validator: Any, text: Json, instance: Json, of: Json) -> Iterator[Any]:
        from jsonschema.exceptions import ValidationError

        if not isinstance(instance, str):
            return
        self._steps.spend(len(instance) // _WRITTEN)
        try:
            if not compile_pattern(str(text)).search(instance):
                yield ValidationError(f"{instance!r} does not match {text!r}")
        except PatternError:
            return

    def additional(self, validator: Any, value: Json, instance: Json, of: Json) -> Iterator[Any]:
        # With patternProperties, it would search for their expressions.
        if "patternProperties" not in of:
            yield from self._standard["additionalProperties"](validator, value, instance, of)


def _validator(schema: Mapping[str, Json]) -> Any:
    """Return a validator within limits, because the schema is the tool's: no regular expression, reference or comparison of
    all pairs can take long, and nothing is fetched.
    """
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry

    standard: dict[str, Any] = Draft202012Validator.VALIDATORS
    steps = _Steps()
    keywords = _Keywords(schema, standard, steps)
    checks = {
        **standard,
        "$ref": keywords.reference,
        "pattern": keywords.pattern,
        "additionalProperties": keywords.additional,
        **dict.fromkeys(_UNCHECKED, _leave_unchecked),
    }
    extend: Any = validators.extend
    kind = extend(
        Draft202012Validator,
        {name: steps.counted(check, compared=name in ("enum", "const")) for name, check in checks.items()},
    )
    Draft202012Validator.check_schema(schema)
    return kind(schema, registry=Registry())


def _leave_unchecked(validator: Any, value: Json, instance: Json, schema: Json) -> Iterator[Any]:
    """Leave a keyword unchecked."""
    yield from ()


def _problems(error: Any) -> Iterator[ArgumentProblem]:
    place = ".".join(str(each) for each in error.absolute_path)
    if error.validator == "required":
        names = [name for name in error.validator_value if name not in error.instance]
        yield from (ArgumentProblem(ArgumentProblemKind.MISSING, _join_place(place, name)) for name in names)
    elif error.validator == "additionalProperties":
        known = (error.schema.get("properties") or {}).keys()
        for name in error.instance.keys() - known:
            yield ArgumentProblem(ArgumentProblemKind.UNKNOWN, _join_place(place, name))
    else:
        yield ArgumentProblem(ArgumentProblemKind.VALUE, place, _expected_words(error))


def _join_place(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _expected_words(error: Any) -> str:
    value = error.validator_value
    if error.validator == "type":
        return " or ".join(value) if isinstance(value, list) else str(value)
    if error.validator == "enum":
        return "one of " + ", ".join(map(str, value))
    return f"{error.validator} {value}" if isinstance(value, str | int | float) else str(error.validator)

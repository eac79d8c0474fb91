"""What goes wrong, in one shape.

ApiError                 raised by an operation: a status, a sentence and a stable id
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from http.client import responses
from typing import Any

from ninja import Schema
from ninja.schema import NinjaGenerateJsonSchema

REFUSALS = frozenset((400, 401, 403, 404, 405, 413, 414, 422))
"""The statuses that any operation may answer with beside its own."""
SCHEMAS = "#/components/schemas/"
"""Where the OpenAPI document has its schemas."""
_WORDS = {
    "missing": "It is missing.",
    "extra_forbidden": "There is no field of this name.",
}
_FIXES = {
    "missing": "Add it.",
    "extra_forbidden": "Check the spelling, or leave it out.",
}


class ProblemOut(Schema):
    """One thing that is wrong with a file or a field, and what to do about it."""

    file: str = ""
    line: int | None = None
    where: str = ""
    what: str
    fix: str = ""
    id: str = ""


class ErrorOut(Schema):
    """Every answer with a status of 400 or more."""

    detail: str
    id: str
    problems: list[ProblemOut] = []


class ApiError(Exception):
    """An operation that is refused; the sentence says what to do, the id is for programs."""

    def __init__(
        self, status: int, sentence: str, *, id: str, problems: Sequence[Mapping[str, object]] = ()
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.id = id
        self.problems = problems


def declare_answers(schema: Any, *, status: int = 200) -> dict[int, Any]:
    """Return what an operation declares: only its own answer; `declare_refusals` adds the others."""
    return {status: schema}


def drop_unused_schemas(document: dict[str, Any]) -> None:
    """Take from an OpenAPI document what nothing refers to: ninja's models of queries, which stand as parameters."""
    text = json.dumps(document)
    schemas = document["components"]["schemas"]
    document["components"]["schemas"] = {
        name: schema for name, schema in schemas.items() if f'"{SCHEMAS}{name}"' in text
    }


def declare_refusals(document: dict[str, Any]) -> None:
    """Add `REFUSALS` to every operation of an OpenAPI document that needs a token.

    Operations don't declare them, because ninja would make a model for each status of each operation.
    """
    schema = ErrorOut.model_json_schema(
        ref_template=SCHEMAS + "{model}", schema_generator=NinjaGenerateJsonSchema
    )
    document["components"]["schemas"] |= {**schema.pop("$defs"), ErrorOut.__name__: schema}
    content = {"application/json": {"schema": {"$ref": SCHEMAS + ErrorOut.__name__}}}
    refused = {status: {"description": responses[status], "content": content} for status in REFUSALS}
    for operations in document["paths"].values():
        for operation in operations.values():
            if "security" in operation:
                operation["responses"] = dict(sorted({**refused, **operation["responses"]}.items()))


def not_found(what: str, key: object) -> ApiError:
    """Return the 404 for what is missing or belongs to a project outside the token's scope."""
    return ApiError(
        404,
        f"There is no {what} '{key}' here. Check the address and the token's project.",
        id="api/not-found",
    )


def error_body(
    sentence: str, id: str, problems: Iterable[Mapping[str, object]] = ()
) -> dict[str, str | list[dict[str, object]]]:
    """Return a refusal as JSON; a problem keeps only what the shape has."""
    shown = [{name: each[name] for name in ProblemOut.model_fields if name in each} for each in problems]
    return {"detail": sentence, "id": id, "problems": shown}


def problem_of(error: Mapping[str, Any]) -> dict[str, object]:
    """Return one of pydantic's errors as a problem, with its place in the request."""
    kind = str(error["type"])
    message = str(error["msg"]).rstrip(".")
    # Without the body parameter's name in the code.
    place = [each for n, each in enumerate(error["loc"]) if n != 1 or error["loc"][0] != "body"]
    return {
        "where": ".".join(map(str, place)),
        "what": _WORDS.get(kind, f"{message[:1].upper()}{message[1:]}."),
        "fix": _FIXES.get(kind, "Correct it; the OpenAPI document says what is possible."),
        "id": f"api/{kind.replace('_', '-')}",
    }

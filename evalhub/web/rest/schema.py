"""Fields that answers of REST share, and what OpenAPI says of fields."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator

from evalhub.lib.value import Value
from evaluators.redaction import redact_json

Redacted = Annotated[dict[str, Any], BeforeValidator(redact_json)]
Username = Annotated[str, BeforeValidator(lambda user: user.get_username())]


def describe_fields(document: dict[str, Any]) -> None:
    """Describe the fields of an OpenAPI document by the text beneath each in its class.

    Read only now: pydantic's `use_attribute_docstrings` reads them at every start, in a second.
    """
    schemas = document["components"]["schemas"]
    for model in (*_below(BaseModel), *_below(Value)):
        fields = schemas.get(model.__name__, {}).get("properties", {})
        for each in model.__mro__ if fields else ():
            for name, text in _texts_beneath(each.__module__).get(each.__name__, {}).items():
                if name in fields:
                    fields[name].setdefault("description", text)


def _below(model: type) -> Iterator[type]:
    for each in model.__subclasses__():
        yield each
        yield from _below(each)


@cache
def _texts_beneath(module: str) -> dict[str, dict[str, str]]:
    """Return the text beneath each field of a module's classes; of our own modules alone."""
    if not module.startswith(("evalhub.", "runs.", "scenarios.", "evaluators.")):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {each.name: dict(_texts(each)) for each in tree.body if isinstance(each, ast.ClassDef)}


def _texts(model: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for pair in pairwise(model.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)

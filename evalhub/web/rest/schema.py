"""The base of what REST answers with and is asked: the texts beneath its fields are descriptions in OpenAPI."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

import ninja
from pydantic import BeforeValidator, GetJsonSchemaHandler

from evalhub.lib.timestamps import moment
from evaluators.redaction import redact_json

Moment = Annotated[str, BeforeValidator(moment)]
Redacted = Annotated[dict[str, Any], BeforeValidator(redact_json)]
Username = Annotated[str, BeforeValidator(lambda user: user.get_username())]


class Described:
    """A model whose fields are described by the text beneath each.

    Read when the document is made: pydantic's `use_attribute_docstrings` reads them at every start, in a second.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core)
        fields = handler.resolve_ref_schema(schema).get("properties", {})
        for each in cls.__mro__:
            for name, text in _texts_beneath(each.__module__).get(each.__name__, {}).items():
                if name in fields:
                    fields[name].setdefault("description", text)
        return schema


@cache
def _texts_beneath(module: str) -> dict[str, dict[str, str]]:
    """Return the text beneath each field of a module's classes; of our own modules alone."""
    if not module.startswith(("evalhub.", "runs.", "scenarios.")):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {each.name: dict(_texts(each)) for each in tree.body if isinstance(each, ast.ClassDef)}


def _texts(model: ast.ClassDef) -> list[tuple[str, str]]:
    found = []
    for pair in pairwise(model.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found.append((name, inspect.cleandoc(text)))
    return found


class Schema(Described, ninja.Schema):
    """What an operation answers with: read from a model, or from a dictionary with the names of its attributes."""

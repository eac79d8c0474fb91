"""Finds secrets that are written out anywhere in a document; they are never stored."""

from __future__ import annotations

from collections.abc import Iterator

from evaluators.model import Json
from scenarios.formats.positions import Document, Location
from scenarios.formats.problems import Problem
from scenarios.formats.secrets import is_credential


def secret_problems(document: Document) -> list[Problem]:
    """Return one problem for each text of a document that is a credential by its key or by its form."""
    return [
        document.problem(
            at,
            f"'{name}' looks like a credential, and secrets are never stored.",
            fix=f"Write {name}: ${{{{ {name.upper().replace('-', '_')} }}}} and set the variable on the worker.",
            id="format/literal-secret",
        )
        for at, name, text in _texts(document.value, (), "")
        if is_credential(name, text)
    ]


def _texts(value: Json, at: Location, name: str) -> Iterator[tuple[Location, str, str]]:
    """Yield every text with the nearest key above it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*at, key), key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*at, index), name)
    elif isinstance(value, str):
        yield at, name, value

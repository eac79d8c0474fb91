"""Texts and JSON that every database can keep."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

# PostgreSQL keeps no NUL in a text, and half of a surrogate pair isn't a character.
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


def storable_text(text: str) -> str:
    """Return the text. Raises a validation error where a database could not keep it."""
    if _UNSTORABLE.search(text):
        raise PydanticCustomError("unstorable", "It contains a NUL byte or an unpaired surrogate. Remove it.")
    return text


Text = Annotated[str, AfterValidator(storable_text)]


def make_storable(text: str) -> str:
    """Return the text without NUL and lone surrogates, which databases reject."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def storable_json(value: Any) -> str:
    """Return a JSON value as text that every database accepts."""
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:
        encoded = b"\\u0000"
    if b"\\u0000" in encoded:
        encoded = msgspec.json.encode(storable_parts(value))
    return encoded.decode()


def storable_parts(value: Any) -> Any:
    """Return a JSON value whose texts are storable."""
    if isinstance(value, str):
        return make_storable(value)
    if isinstance(value, dict):
        return {make_storable(str(key)): storable_parts(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable_parts(item) for item in value]
    return value

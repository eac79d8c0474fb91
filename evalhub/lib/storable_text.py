"""Texts that every database can keep."""

from __future__ import annotations

import re
from typing import Annotated

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

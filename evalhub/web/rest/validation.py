"""What is wrong with a field, as sentences of the shape that every refusal has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_WORDS = {
    "missing": "It is missing.",
    "extra_forbidden": "There is no field of this name.",
}
_FIXES = {
    "missing": "Add it.",
    "extra_forbidden": "Check the spelling, or leave it out.",
}


def problem_of(error: Mapping[str, Any]) -> dict[str, object]:
    """Return one of pydantic's errors as a problem, with its place in the request."""
    kind = str(error["type"])
    message = str(error["msg"]).rstrip(".")
    return {
        "where": ".".join(map(str, _place(error["loc"]))),
        "what": _WORDS.get(kind, f"{message[:1].upper()}{message[1:]}."),
        "fix": _FIXES.get(kind, "Correct it; the OpenAPI document says what is possible."),
        "id": f"api/{kind.replace('_', '-')}",
    }


def _place(location: Sequence[str | int]) -> Sequence[str | int]:
    """Return a place in the request, without the body parameter's name in the code."""
    return [location[0], *location[2:]] if location[:1] == ("body",) else location

"""JSON that a script printed or a model wrote."""

from __future__ import annotations

import json
from typing import NoReturn

from evaluators.model import Json


class NoJson(ValueError):
    """The output is no JSON."""


def refuse_constant(name: str) -> NoReturn:
    """Refuse `NaN` and `Infinity`, which Python's decoder takes and JSON does not have. Raises `NoJson`."""
    raise NoJson(f"{name} is no JSON.")


def decoded(text: str) -> Json:
    """Return the value that the text is. Raises `NoJson`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoJson(str(error)) from None


def whole_or_last_line(stdout: str) -> Json:
    """Return the JSON value of the whole output, else of its last line that is not empty, else None."""
    lines = stdout.strip().splitlines()
    for text in (stdout, lines[-1] if lines else ""):
        try:
            return decoded(text)
        except NoJson:
            continue
    return None


def equal(left: Json, right: Json) -> bool:
    """Compare JSON values: 3 equals 3.0, true does not equal 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return bool(left == right)

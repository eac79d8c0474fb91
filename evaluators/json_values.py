"""Decode and compare JSON from scripts and models."""

from __future__ import annotations

import json
from typing import NoReturn

from evalhub.lib.limits import DEEPEST_JSON
from evaluators.model import Json

CUT = f"[nested more than {DEEPEST_JSON} levels]"
_INDENTED = json.JSONEncoder(indent=2, ensure_ascii=False)


class NoJson(ValueError):
    """The text is not JSON."""


def refuse_constant(name: str) -> NoReturn:
    """Reject `NaN` and `Infinity`, which Python's decoder accepts. Raises `NoJson`."""
    raise NoJson(f"{name} is not JSON.")


def decode_json(text: str) -> Json:
    """Decode a JSON text. Raises `NoJson`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoJson(str(error)) from None


def strict_json(text: str) -> Json:
    """Decode a JSON text in which `NaN` and `Infinity` are errors, as in JavaScript. Raises `NoJson`."""
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise NoJson(str(error)) from None


def json_output(stdout: str) -> Json:
    """Decode the whole output, else its last non-empty line, else return None."""
    lines = stdout.strip().splitlines()
    for text in (stdout, lines[-1] if lines else ""):
        try:
            return decode_json(text)
        except NoJson:
            continue
    return None


def int_or_none(value: Json) -> int | None:
    """Return an integer as it is, and None for anything else, such as true."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def cut_deep(value: Json, levels: int = DEEPEST_JSON) -> Json:
    """Return the value with `CUT` in place of what is nested too deep to be stored, shown and exported."""
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return CUT
    if isinstance(value, dict):
        return {name: cut_deep(item, levels - 1) for name, item in value.items()}
    return [cut_deep(item, levels - 1) for item in value]


def indent_json(value: Json, *, most: int) -> str:
    """Return JSON with indentation, on one line if that has more than `most` characters: nesting multiplies it."""
    pieces, size = [], 0
    for piece in _INDENTED.iterencode(value):
        size += len(piece)
        if size > most:
            return json.dumps(value, ensure_ascii=False)
        pieces.append(piece)
    return "".join(pieces)


def are_equal(left: Json, right: Json) -> bool:
    """Compare JSON values: 3 equals 3.0, but true does not equal 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(are_equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(are_equal(left[key], right[key]) for key in left)
    return bool(left == right)

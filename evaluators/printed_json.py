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

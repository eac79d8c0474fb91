"""JSON that a script printed."""

from __future__ import annotations

import json

from evaluators.model import Json


class NoJson(ValueError):
    """The output is no JSON."""


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

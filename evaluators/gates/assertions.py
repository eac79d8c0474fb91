"""What `command_json_path` asserts of the values that its path finds."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from evaluators.model import Json
from evaluators.printed_json import equal, refuse_constant

FORMS = "exists, equals VALUE, contains TEXT, or len >= N (also ==, >, <=, <)"

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    ">=": operator.ge,
    "==": operator.eq,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
_LEN = re.compile(r"len\s*(>=|==|<=|>|<)\s*(\d{1,9})")


class BadAssertion(ValueError):
    """The text is no assertion; the message names the allowed forms."""


class Assertion(Struct, frozen=True):
    """A parsed assertion."""

    form: Literal["exists", "equals", "contains", "len"]
    expected: Json = None
    comparison: str = ""

    def holds(self, values: Sequence[Json], *, counting: bool) -> bool:
        """Tell whether it holds for the values found; for `len`, `counting` takes their number."""
        if self.form == "len":
            length = self.length(values, counting=counting)
            return length is not None and _COMPARISONS[self.comparison](length, self.expected)
        return any(self._holds_for(value) for value in values)

    def _holds_for(self, value: Json) -> bool:
        if self.form == "exists":
            return value is not None
        if self.form == "equals":
            return equal(value, self.expected)
        return isinstance(value, str) and self.expected in value

    def length(self, values: Sequence[Json], *, counting: bool) -> int | None:
        """Return what `len` compares; None where there is no array or object."""
        if counting or len(values) > 1:
            return len(values)
        return len(values[0]) if values and isinstance(values[0], list | dict) else None


def parse_assertion(text: str) -> Assertion:
    """Return the assertion that the text says. Raises `BadAssertion` with the allowed forms."""
    word, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    if word == "exists" and not rest:
        return Assertion("exists")
    if word == "equals" and rest:
        return Assertion("equals", _value(rest))
    if word == "contains" and rest:
        return Assertion("contains", rest)
    if found := _LEN.fullmatch(text.strip()):
        return Assertion("len", int(found[2]), found[1])
    raise BadAssertion(f"'{text}' is not an assertion. Write {FORMS}.")


def _value(text: str) -> Json:
    """Return the JSON value; a bare word is a string."""
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except ValueError:
        return text

"""Write values as JavaScript's `String()` and `JSON.stringify()` do, because expected texts use their output."""

from __future__ import annotations

import json
import math
from decimal import Decimal

from evaluators.model import Json

WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The characters that JavaScript trims and `\\s` matches (ECMA-262, WhiteSpace and LineTerminator)."""
_POINT_LIMIT = 21
"""The most digits before the point that JavaScript writes without an exponent."""
_ZERO_LIMIT = -6
"""The smallest exponent that JavaScript writes as a decimal fraction."""


def string_of(value: Json) -> str:
    """Return a JSON value as text: texts unchanged, `7` for 7.0, compact JSON for the rest."""
    return value if isinstance(value, str) else javascript_json(value)


def javascript_json(value: Json) -> str:
    """Return compact JSON with JavaScript's number format and the keys in their order."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, dict):
        pairs = (
            f"{json.dumps(str(key), ensure_ascii=False)}:{javascript_json(item)}"
            for key, item in value.items()
        )
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(javascript_json, value)) + "]"
    # Integers stay exact, even where JavaScript would round.
    return str(value)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if value == 0:
        return "0"
    sign, numbers, exponent = Decimal(repr(value)).normalize().as_tuple()
    digits = "".join(map(str, numbers))
    # The exponent is a letter only for non-finite numbers.
    return ("-" if sign else "") + _written(digits, len(digits) + int(exponent))


def _written(digits: str, point: int) -> str:
    """Place the decimal point after `point` digits (ECMAScript, Number::toString)."""
    if len(digits) <= point <= _POINT_LIMIT:
        return digits + "0" * (point - len(digits))
    if 0 < point <= _POINT_LIMIT:
        return f"{digits[:point]}.{digits[point:]}"
    if _ZERO_LIMIT < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"

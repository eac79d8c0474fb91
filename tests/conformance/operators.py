"""Compares a result with what a conformance case expects of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

TOLERANCE = 1e-9

Run = Callable[[Any], Any]


def differences(expected: Mapping[str, Any], result: Any, run: Run | None = None) -> list[str]:
    """Return what is wrong with a result, a line each; none when it is as expected.

    A result that is a text is compared as a whole by `equals`, `contains` and `lacks`.
    `run` gives the result for another input, which `width_lt_of` compares with.
    """
    if isinstance(result, str):
        expected = {"text" if key == "equals" else f"text_{key}": want for key, want in expected.items()}
        result = {"text": result}
    problems = {key: _problem(key, want, result, run) for key, want in expected.items()}
    return [f"{key}: {problem}" for key, problem in problems.items() if problem]


def _problem(key: str, want: Any, result: Mapping[str, Any], run: Run | None) -> str:
    if key == "error_regex":
        text = str(result.get("error") or "")
        return "" if text and re.search(want, text, re.IGNORECASE) else f"{text!r} does not match {want!r}"
    if key == "error" and want is True:
        return "" if result.get("error") else "nothing was refused"
    if key == "width_lt_of" and run is not None:
        return _narrower(result, run(want))
    if key in result:
        return "" if same(want, result[key]) else f"expected {want!r}, got {result[key]!r}"
    for suffix, holds in OPERATORS.items():
        name = key.removesuffix(suffix)
        if key.endswith(suffix) and name in result:
            return "" if holds(result[name], want) else f"{result[name]!r} is not {suffix[1:]} {want!r}"
    return "" if same(want, None) else f"expected {want!r}, got nothing"


def same(want: Any, got: Any) -> bool:
    """Compare: objects as subsets, numbers to `TOLERANCE`, `{"$undefined": true}` is absent or None."""
    if isinstance(want, Mapping):
        return _same_object(want, got)
    if isinstance(want, list):
        return isinstance(got, list | tuple) and len(want) == len(got) and all(map(same, want, got))
    if isinstance(want, bool) or isinstance(got, bool):
        return want is got
    if isinstance(want, int | float) and isinstance(got, int | float):
        return math.isclose(want, got, rel_tol=0, abs_tol=TOLERANCE)
    return bool(want == got)


def _same_object(want: Mapping[str, Any], got: Any) -> bool:
    if want == {"$undefined": True}:
        return got is None
    if want == {"$number": True}:
        return isinstance(got, int | float) and not isinstance(got, bool)
    if not isinstance(got, Mapping):
        return False
    return not differences(want, got)


def _narrower(result: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    width, limit = result["upper"] - result["lower"], other["upper"] - other["lower"]
    return "" if width < limit else f"the width {width} is not less than {limit}"


def _listed(want: Any) -> list[Any]:
    return want if isinstance(want, list) else [want]


def _holds_one(got: Any, want: Any) -> bool:
    if isinstance(got, str):
        return str(want) in got
    return any(same(want, one) for one in got)


def _contains(got: Any, want: Any) -> bool:
    if isinstance(got, Mapping):
        return all(
            str(value) in got[name] if isinstance(got.get(name), str) else same(value, got.get(name))
            for name, value in want.items()
        )
    return got is not None and all(_holds_one(got, one) for one in _listed(want))


def _lacks(got: Any, want: Any) -> bool:
    return got is None or not any(_holds_one(got, one) for one in _listed(want))


def _approx(got: Any, want: Any) -> bool:
    value, tolerance = want if isinstance(want, list) else (want, TOLERANCE)
    return got is not None and math.isclose(got, value, rel_tol=0, abs_tol=tolerance)


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "_len": lambda got, want: len(got) == want,
    "_contains": _contains,
    "_lacks": _lacks,
    "_any_substring": lambda got, want: all(any(part in str(one) for one in got) for part in _listed(want)),
    "_nonempty": lambda got, want: bool(got) is want,
    "_gt": lambda got, want: got > want,
    "_gte": lambda got, want: got >= want,
    "_lt": lambda got, want: got < want,
    "_lte": lambda got, want: got <= want,
    "_approx": _approx,
}

"""The gate that looks into a command's JSON output."""

from __future__ import annotations

import json
import re
import threading
import warnings
from functools import lru_cache
from typing import Annotated, Any, Literal

import re2
from pydantic import AfterValidator

from evaluators.gates.assertions import parse_assertion
from evaluators.gates.base import excerpt
from evaluators.gates.commands import OutputGate
from evaluators.model import Json
from evaluators.patterns import LONGEST
from evaluators.printed_json import refuse_constant

# Filters with `=~` and the functions sub and split run patterns that nothing limits.
_REFUSED = re.compile(r"=~|`\s*(?:sub|split)\b")
_parsing = threading.Lock()
"""Held while warnings are set aside, which Python does for the whole process."""
# RE2, as Python's own takes cubic time over a name such as "[,,,,".
_MANY = re2.compile(r"\*|\[[^\]'\"]*[?:,][^\]]*\]|\[\?")


class BadJsonPath(ValueError):
    """The text is no JSONPath, or one that is not allowed; the message is a sentence."""


@lru_cache(maxsize=256)
def check_json_path(text: str) -> Any:
    """Return the compiled path. Raises `BadJsonPath` with what is wrong with it."""
    if len(text) > LONGEST:
        raise BadJsonPath(f"The path '{text[:40]}…' has {len(text)} characters; {LONGEST} are allowed.")
    if _REFUSED.search(text):
        raise BadJsonPath(
            f"'{text}' matches a regular expression, which is not allowed in a path. Compare with ==."
        )
    # Loaded for the first path: few suites have one.
    from jsonpath_ng.exceptions import JSONPathError
    from jsonpath_ng.ext.parser import parse

    try:
        with _parsing, warnings.catch_warnings():
            # What the next major release drops is read for as long as the pinned one reads it.
            warnings.simplefilter("ignore", DeprecationWarning)
            path = parse(text)
    except (JSONPathError, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise BadJsonPath(
            f"'{text}' is not a JSONPath: {str(error).rstrip('.!')}. Write one such as $.items[0].id."
        ) from None
    if _intersects(path):
        raise BadJsonPath(
            f"'{text}' intersects paths with &, which cannot be carried out. Use one gate for each."
        )
    return path


def _intersects(path: Any) -> bool:
    """Tell whether a path holds the operator that the library reads and does not carry out."""
    parts = (getattr(path, side, None) for side in ("left", "right"))
    # By its name, as the class is private.
    return type(path).__name__ == "_Intersect" or any(map(_intersects, filter(None, parts)))


def _checked_path(text: str) -> str:
    check_json_path(text)
    return text


def _checked_assertion(text: str) -> str:
    parse_assertion(text)
    return text


class CommandJsonPath(OutputGate):
    """The command's stdout is JSON, and what the path finds in it is as asserted."""

    type: Literal["command_json_path"] = "command_json_path"
    path: Annotated[str, AfterValidator(_checked_path)]
    assertion: Annotated[str, AfterValidator(_checked_assertion)]

    def judge_output(self, stdout: str) -> tuple[bool, str, dict[str, Json]]:
        try:
            document = json.loads(stdout, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            return False, "its output is not JSON.", {"expected": self.assertion}
        values = [match.value for match in check_json_path(self.path).find(document)]
        assertion = parse_assertion(self.assertion)
        passed = assertion.holds(values, counting=bool(_MANY.search(self.path)))
        detail = {"path": self.path, "expected": self.assertion, "actual": _shown(values)}
        return passed, self._message(values, passed=passed), detail

    def _expected(self) -> str:
        wanted = "a value" if self.assertion == "exists" else self.assertion.removeprefix("equals ")
        return f"Expected {wanted} at {self.path}"

    def _message(self, values: list[Json], *, passed: bool) -> str:
        if passed:
            return f"{self._expected()}."
        if not values:
            return f"{self._expected()}, found nothing."
        return f"{self._expected()}, found {_shown(values)}."


def _shown(values: list[Json]) -> str:
    shown: Json = values[0] if len(values) == 1 else values
    return excerpt(json.dumps(shown, ensure_ascii=False))[:300]

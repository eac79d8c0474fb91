"""The gate on a command's JSON output: a JSONPath and an assertion on the values it finds.

How many values a path may find is bounded before the search, because unions and descendants multiply.
"""

from __future__ import annotations

import json
import operator
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Annotated, Any, Literal

import re2
from msgspec import Struct
from pydantic import AfterValidator, ValidationInfo

from evaluators.grading.gates.base_gate import excerpt
from evaluators.grading.gates.command_gates import OutputGate
from evaluators.json_values import are_equal, refuse_constant
from evaluators.model import CHECKED, Json
from evaluators.patterns import LONGEST


class DocumentSize(Struct, frozen=True):
    """How large a JSON document is."""

    values: int
    depth: int
    width: int
    """The most children of one value."""


def document_size(document: Json) -> DocumentSize:
    """Return a document's size."""
    values, depth, width = 0, 0, 1
    stack = [(document, 1)]
    while stack:
        value, level = stack.pop()
        values, depth = values + 1, max(depth, level)
        children = _children(value)
        width = max(width, len(children))
        stack += [(child, level + 1) for child in children]
    return DocumentSize(values, depth, width)


def _children(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def most_repeats(path: Any, size: DocumentSize) -> int:
    """Return how many values a compiled path may find at most, beyond finding each once.

    A step down the tree finds every value once; what can find one again multiplies.
    """
    ways = _ways(path, size)
    # The first root, and the first `..`, reach every value once.
    if _first(path) == "Root":
        ways //= size.values
    if _has(path, "Descendants"):
        ways //= size.depth
    return size.values * (ways - 1)


def _ways(path: Any, size: DocumentSize) -> int:
    """Return in how many ways a path may reach one value."""
    inner = [_ways(each, size) for each in _parts(path)]
    if _kind(path) == "Union":
        return sum(inner)
    ways = {
        "Root": size.values,
        "Descendants": size.depth,
        "Parent": size.width,
        "Fields": len(getattr(path, "fields", ())),
        "Index": len(getattr(path, "indices", ())),
    }
    return max(1, ways.get(_kind(path), 1)) * prod(inner)


def _kind(path: Any) -> str:
    # Compared by name because some classes are private.
    return type(path).__name__.lstrip("_")


def _first(path: Any) -> str:
    while left := getattr(path, "left", None):
        path = left
    return _kind(path)


def _has(path: Any, kind: str) -> bool:
    return _kind(path) == kind or any(_has(each, kind) for each in _parts(path))


def _parts(value: Any) -> Iterator[Any]:
    """Yield the paths and expressions that a path consists of."""
    for attribute in vars(value).values():
        for part in attribute if isinstance(attribute, list | tuple) else (attribute,):
            for element in part if isinstance(part, list | tuple) else (part,):
                if type(element).__module__.startswith("jsonpath_ng"):
                    yield element


MOST_REPEATS = 200_000
"""How often a path may find a value that it has found before."""
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
    """The text is not an assertion; the message names the allowed forms."""


class Assertion(Struct, frozen=True):
    """A parsed assertion."""

    form: Literal["exists", "equals", "contains", "len"]
    expected: Json = None
    comparison: str = ""

    def is_true(self, values: Sequence[Json], *, counting: bool) -> bool:
        """Return whether the values fulfil the assertion; `counting` makes `len` count the values."""
        if self.form == "len":
            length = self.length(values, counting=counting)
            return length is not None and _COMPARISONS[self.comparison](length, self.expected)
        return any(self._is_true_for(value) for value in values)

    def _is_true_for(self, value: Json) -> bool:
        if self.form == "exists":
            return value is not None
        if self.form == "equals":
            return are_equal(value, self.expected)
        return isinstance(value, str) and self.expected in value

    def length(self, values: Sequence[Json], *, counting: bool) -> int | None:
        """Return the number that `len` compares; None without an array or object."""
        if counting or len(values) > 1:
            return len(values)
        return len(values[0]) if values and isinstance(values[0], list | dict) else None


def parse_assertion(text: str) -> Assertion:
    """Parse an assertion. Raises `BadAssertion` with the allowed forms."""
    word, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    if word == "exists" and not rest:
        return Assertion("exists")
    if word == "equals" and rest:
        return Assertion("equals", _value(rest))
    if word == "contains" and rest:
        return Assertion("contains", rest)
    if match := _LEN.fullmatch(text.strip()):
        return Assertion("len", int(match[2]), match[1])
    raise BadAssertion(f"'{text}' is not an assertion. Write {FORMS}.")


def _value(text: str) -> Json:
    """Decode a JSON value; a bare word is a string."""
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except ValueError:
        return text


# `=~`, `sub` and `split` run regular expressions without a time limit.
_REFUSED = re.compile(r"=~|`\s*(?:sub|split)\b")
_QUOTED_OR_NAME = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|(?P<name>(?:[A-Za-z_@]|[^\x00-\x7f\s])(?:[\w@-]|[^\x00-\x7f\s])*)"""
)
_parsing = threading.Lock()
"""Guards `catch_warnings`, which affects the whole process."""
# RE2, because Python's engine takes cubic time over a name such as "[,,,,".
_MANY = re2.compile(r"\*|\[[^\]'\"]*[?:,][^\]]*\]|\[\?")


class BadJsonPath(ValueError):
    """The text is not an allowed JSONPath; the message is a sentence."""


def _with_quoted_names(text: str) -> str:
    """Return a path with quotes around names with other letters than A to Z, which jsonpath-ng requires."""

    def quoted(match: re.Match[str]) -> str:
        name = match["name"]
        return f"'{name}'" if name and not name.isascii() else match[0]

    return _QUOTED_OR_NAME.sub(quoted, text)


@lru_cache(maxsize=256)
def check_json_path(text: str) -> Any:
    """Return the compiled path. Raises `BadJsonPath`."""
    if len(text) > LONGEST:
        raise BadJsonPath(f"The path '{text[:40]}…' has {len(text)} characters; {LONGEST} are allowed.")
    if _REFUSED.search(text):
        raise BadJsonPath(
            f"'{text}' uses a regular expression, which is not allowed in a path. Compare with ==."
        )
    # Imported here because few suites use paths.
    from jsonpath_ng.exceptions import JSONPathError
    from jsonpath_ng.ext.parser import parse

    try:
        with _parsing, warnings.catch_warnings():
            # Syntax that the next major release drops still works in the pinned one.
            warnings.simplefilter("ignore", DeprecationWarning)
            path = parse(_with_quoted_names(text))
    except (JSONPathError, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise BadJsonPath(
            f"'{text}' is not a JSONPath: {str(error).rstrip('.!')}. Write one such as $.items[0].id."
        ) from None
    if _intersects(path):
        raise BadJsonPath(
            f"'{text}' intersects paths with &, which is not supported. Use one gate for each path."
        )
    return path


def _intersects(path: Any) -> bool:
    """Return whether a path uses `&`, which the library parses but does not evaluate."""
    parts = (getattr(path, side, None) for side in ("left", "right"))
    # Compared by name because the class is private.
    return type(path).__name__ == "_Intersect" or any(map(_intersects, filter(None, parts)))


def _checked_path(text: str, info: ValidationInfo) -> str:
    if info.context != CHECKED:
        check_json_path(text)
    return text


def _checked_assertion(text: str, info: ValidationInfo) -> str:
    if info.context != CHECKED:
        parse_assertion(text)
    return text


class CommandJsonPath(OutputGate):
    """The values at a path in the command's JSON output fulfil an assertion."""

    type: Literal["command_json_path"] = "command_json_path"
    path: Annotated[str, AfterValidator(_checked_path)]
    assertion: Annotated[str, AfterValidator(_checked_assertion)]

    def judge_output(self, stdout: str) -> tuple[bool, str, dict[str, Json]]:
        try:
            document = json.loads(stdout, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            return False, "its output is not JSON.", {"expected": self.assertion}
        path = check_json_path(self.path)
        if (again := most_repeats(path, document_size(document))) > MOST_REPEATS:
            what = (
                f"{self.path} could find {again:,} values of its output more than once; {MOST_REPEATS:,} are allowed. "
                "Use fewer '..' and unions."
            )
            return False, what, {"path": self.path, "expected": self.assertion}
        try:
            values = [match.value for match in path.find(document)]
        except RecursionError:
            return False, "its output is nested too deep.", {"path": self.path, "expected": self.assertion}
        assertion = parse_assertion(self.assertion)
        passed = assertion.is_true(values, counting=bool(_MANY.search(self.path)))
        detail = {"path": self.path, "expected": self.assertion, "actual": _as_json(values)}
        return passed, self._message(values, passed=passed), detail

    def _message(self, values: list[Json], *, passed: bool) -> str:
        expected = "a value" if self.assertion == "exists" else self.assertion.removeprefix("equals ")
        if passed:
            return f"found {expected} at {self.path}."
        return f"expected {expected} at {self.path}, found {_as_json(values) if values else 'nothing'}."


def _as_json(values: list[Json]) -> str:
    shown: Json = values[0] if len(values) == 1 else values
    return excerpt(json.dumps(shown, ensure_ascii=False))[:300]

"""Convert `expect` to the contract's shape, with a lint for every converted value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from evaluators.js_text import string_of
from evaluators.model import Json
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.problems import Problem

NAME_KEYS = ("toolsCalled", "toolsNotCalled", "responseMatches")
"""Lists of texts; a single value is a list of one."""
VALUE_KEYS = ("responseContains", "responseNotContains")
"""Lists of expected texts, which may be numbers; a single value is a list of one."""
GROUP_KEYS = ("toolsAcceptable", "responseContainsAny")
"""Lists of lists; a value in the place of a list is a list of one, and a flat list is a single group."""
TEXT_GROUP_KEYS = ("responseContainsAny",)
"""Those of expected texts."""
_SCALAR = (str, int, float, bool)


@dataclass
class Shaper:
    """Converts one `expect`; `lints` lists the conversions."""

    document: PositionedDocument
    at: Location
    lints: list[Problem] = field(default_factory=list)

    def shape(self, expect: dict[str, Json]) -> dict[str, Json]:
        """Return the present keys in the contract's shape; other values stay unchanged."""
        return {
            key: self._converter(key)(key, value)
            for key, value in expect.items()
            if self._has_value(key, value)
        }

    def _has_value(self, key: str, value: Json) -> bool:
        if value is None:
            self._lint(
                (key,), "The key has no value, so it asserts nothing.", "Remove it.", "format/no-value"
            )
        return value is not None

    def _converter(self, key: str) -> Callable[[str, Json], Json]:
        if key in NAME_KEYS:
            return self._list
        if key in VALUE_KEYS:
            return self._texts
        if key in GROUP_KEYS:
            return self._lists
        return self._list if key == "toolParams" else lambda _, value: value

    def _list(self, key: str, value: Json) -> Json:
        if isinstance(value, dict if key == "toolParams" else _SCALAR):
            self._lint(
                (key,),
                "This must be a list, not a single value.",
                "Write it as a list.",
                "format/scalar-for-list",
            )
            return [value]
        return value

    def _texts(self, key: str, value: Json) -> Json:
        items = self._list(key, value)
        if not isinstance(items, list):
            return items
        return [self._text((key, index), item) for index, item in enumerate(items)]

    def _text(self, at: Location, value: Json) -> Json:
        if isinstance(value, int | float):
            self._lint(
                at, f"{string_of(value)} is compared as text.", "Write it in quotes.", "format/not-text-value"
            )
            return string_of(value)
        return value

    def _lists(self, key: str, value: Json) -> Json:
        items = self._list(key, value)
        if not isinstance(items, list):
            return items
        if items and all(isinstance(item, _SCALAR) for item in items):
            if isinstance(value, list):
                what = "This must be a list of lists; it is read as a single group."
                self._lint((key,), what, "Put the list into a list.", "format/flat-group")
            items = [items]
        groups = [[item] if isinstance(item, _SCALAR) else item for item in items]
        return [self._group((key, index), group) for index, group in enumerate(groups)]

    def _group(self, at: Location, group: Json) -> Json:
        if not isinstance(group, list) or at[0] not in TEXT_GROUP_KEYS:
            return group
        return [self._text((*at, index), item) for index, item in enumerate(group)]

    def _lint(self, at: Location, what: str, fix: str, id: str) -> None:
        self.lints.append(self.document.problem((*self.at, *at), what, fix=fix, id=id, lint=True))

"""Read the JSON of REST requests, within a limit of its own."""

from __future__ import annotations

import re

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from ninja.parser import Parser
from ninja.types import DictStrAny

MAX_VALUES = 500_000
"""Values in a body; one that isn't a field of the operation takes a kilobyte, because its error names it."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+\\?"?', re.DOTALL)
"""A string of JSON, or the rest of a text that ends within one: so each quote is read once."""


class JsonBodies(Parser):
    """Reads JSON of at most `MAX_VALUES`, whatever type the request declares. Raises `RequestDataTooBig`."""

    def parse_body(self, request: HttpRequest) -> DictStrAny:
        body = request.body
        if _most_values(body) > MAX_VALUES and _most_values(_STRING.sub(b"", body)) > MAX_VALUES:
            raise RequestDataTooBig(f"The body has more than {MAX_VALUES:,} values. Send less at once.")
        return super().parse_body(request)


def _most_values(text: bytes) -> int:
    """Return a number that JSON has no more values than: each begins with a bracket, or follows one or a comma."""
    return sum(map(text.count, (b"[", b"{", b",")))

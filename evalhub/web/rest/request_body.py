"""What requests carry: JSON within a limit, and texts, keys and JSON that every database can keep."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from ninja.parser import Parser
from ninja.types import DictStrAny
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from evalhub.lib.limits import DEEPEST_JSON
from evalhub.lib.storable_text import storable_text
from evalhub.web.paging import LARGEST_KEY

MAX_VALUES = 500_000
"""Values in a body; one that isn't a field of the operation takes a kilobyte, because its error names it."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+\\?"?', re.DOTALL)
"""A string of JSON, or the rest of a text that ends within one: so each quote is read once."""


def validate_json(value: Any) -> Any:
    """Return a JSON value. Raises a validation error if a JSON column can't store it or it is nested too deep."""
    _check(value, 0)
    return value


def _check(value: Any, depth: int) -> None:
    if depth > DEEPEST_JSON:
        raise PydanticCustomError("too_deep", "It is nested too deep. Keep to 60 levels.")
    if isinstance(value, str):
        storable_text(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise PydanticCustomError("not_finite", "It must be a finite number. Leave it out or write null.")
    elif isinstance(value, dict):
        for name, item in value.items():
            storable_text(name)
            _check(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth + 1)


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(storable_text)]
Key = Annotated[int, Field(ge=1, le=LARGEST_KEY)]
JsonValue = Annotated[Any, AfterValidator(validate_json)]


class RequestBody(BaseModel):
    """Base of every request body: a name that does not exist is an error, and so is Infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


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

"""What requests carry: texts, keys and JSON that every database can keep."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from evalhub.lib.limits import DEEPEST_JSON
from evalhub.lib.storable_text import storable_text
from evalhub.web.paging import LARGEST_KEY


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

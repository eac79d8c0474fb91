"""The base of frozen dataclasses that pages, REST and exports share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, PlainSerializer

from evalhub.lib.timestamps import moment

Moment = Annotated[datetime, PlainSerializer(moment, return_type=str)]


class Value:
    """Gives a dataclass's docstrings to the OpenAPI document, where every field is required in answers."""

    __pydantic_config__ = ConfigDict(
        use_attribute_docstrings=True, json_schema_serialization_defaults_required=True
    )

"""The base of frozen dataclasses that pages, REST and exports share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, PlainSerializer

from evalhub.lib.timestamps import format_timestamp

Moment = Annotated[datetime, PlainSerializer(format_timestamp, return_type=str)]


class Value:
    """A dataclass whose fields the OpenAPI document describes, and requires in answers."""

    __pydantic_config__ = ConfigDict(json_schema_serialization_defaults_required=True)

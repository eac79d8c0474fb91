"""Read the JSON of REST requests, within a limit of its own."""

from __future__ import annotations

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from ninja.parser import Parser
from ninja.types import DictStrAny

MAX_BYTES = 4 * 1024 * 1024
"""Bytes of JSON; its values, and the errors in them, take up to 150 times as much memory. Files come as multipart."""


class JsonBodies(Parser):
    """Reads JSON up to `MAX_BYTES`, whatever type the request declares."""

    def parse_body(self, request: HttpRequest) -> DictStrAny:
        if len(request.body) > MAX_BYTES:
            raise RequestDataTooBig
        return super().parse_body(request)

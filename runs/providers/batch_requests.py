"""Requests about batches, and the JSON lines that they bring."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from evaluators.model import Json
from runs.errors import ProviderError
from runs.providers.access import ModelAccess
from runs.providers.base import Invocation
from runs.providers.chat import messages_of
from runs.providers.completion import Asking, ModelFailed, offered
from runs.providers.stub_chat import schemas_of
from runs.providers.waiting import Patience

T = TypeVar("T")

SECONDS = 120.0
"""Time limit of one request about a batch; with a file of many questions it may take some."""


class BatchRequestFailed(ProviderError):
    """A request about a batch was not answered as it should be; `status` is that of HTTP where one came back."""

    def __init__(self, message: str, *, kind: str, status: int | None) -> None:
        super().__init__(message, kind=kind)
        self.status = status


def asked(access: ModelAccess, call: Callable[[Any], T], *, once: bool = False) -> T:
    """Return what a request about a batch brings. Raises `ProviderError` (kind `endpoint` or `timeout`).

    `once` repeats it only where the other side has answered that it did not take it.
    """
    asking = Asking(access, Patience(SECONDS * (1 + access.backoff.max_retries)), repeats_lost=not once)
    try:
        return asking.repeated(call)
    except ModelFailed as error:
        raise BatchRequestFailed(str(error), kind=error.kind, status=error.status) from error


def request_body(litellm: Any, access: ModelAccess, invocation: Invocation) -> dict[str, Json]:
    """Return a request as litellm would send it by itself. Raises `ValueError` with its reason where it would not."""
    from litellm.types.utils import CallTypes

    # litellm puts a key of its own making in, and stops before anything is sent.
    where = {name: value for name, value in access.connection.items() if name != "api_key"}
    messages = [dict(message) for message in messages_of(invocation)]
    tools = offered(schemas_of(invocation.tools))
    asked_for = {"model": access.model, "messages": messages, **where, **access.settings, **tools}
    written = litellm.utils.return_raw_request(CallTypes.completion, asked_for)
    if not written.get("raw_request_body"):
        raise ValueError(f"litellm cannot write the request: {written.get('error')}")
    body = dict(written["raw_request_body"])
    return {**body.pop("extra_body", {}), **body}


def rows_of(content: bytes) -> Iterator[dict[str, Json]]:
    """Return the objects of JSON lines; a line that is none is passed over, and its request counts as missing."""
    for line in content.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row

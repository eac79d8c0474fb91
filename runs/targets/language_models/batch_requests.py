"""Send batch requests and parse JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from evaluators.model import Json
from runs.errors import ProviderError
from runs.targets.language_models.chat import chat_messages
from runs.targets.language_models.completion import Asking, ModelFailed, tool_parameters
from runs.targets.language_models.stub_chat import schemas_of
from runs.targets.providers.access import ModelAccess
from runs.targets.providers.base import Invocation
from runs.targets.providers.waiting import TimeLimit

T = TypeVar("T")

SECONDS = 120.0
"""Time limit of one batch request; uploads of many questions are slow."""


class BatchRequestFailed(ProviderError):
    """A batch request failed; `status` is the HTTP status, if any."""

    def __init__(self, message: str, *, kind: str, status: int | None) -> None:
        super().__init__(message, kind=kind)
        self.status = status


def send_batch_request(access: ModelAccess, call: Callable[[Any], T], *, once: bool = False) -> T:
    """Return a batch request's result. Raises `ProviderError` (kind `endpoint` or `timeout`).

    With `once`, retries only if the provider answered that it rejected the request.
    """
    asking = Asking(access, TimeLimit(SECONDS * (1 + access.backoff.max_retries)), repeats_lost=not once)
    try:
        return asking.repeated(call)
    except ModelFailed as error:
        raise BatchRequestFailed(str(error), kind=error.kind, status=error.status) from error


def request_body(litellm: Any, access: ModelAccess, invocation: Invocation) -> dict[str, Json]:
    """Return the request body that litellm would send. Raises `ValueError` with litellm's reason."""
    from litellm.types.utils import CallTypes

    # litellm inserts a dummy key and stops before sending.
    where = {name: value for name, value in access.connection.items() if name != "api_key"}
    messages = [dict(message) for message in chat_messages(invocation)]
    tools = tool_parameters(schemas_of(invocation.tools))
    asked_for: dict[str, Json] = {"model": access.model, "custom_llm_provider": access.provider}
    asked_for |= {"messages": messages, **where, **access.settings, **tools}
    written = litellm.utils.return_raw_request(CallTypes.completion, asked_for)
    if not written.get("raw_request_body"):
        raise ValueError(f"litellm can't build the request: {written.get('error')}")
    body = dict(written["raw_request_body"])
    return {**body.pop("extra_body", {}), **body}


def parse_json_lines(content: bytes) -> Iterator[dict[str, Json]]:
    """Return the objects of JSON lines; skip other lines, whose requests count as missing."""
    for line in content.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row

"""Submit many questions at once: OpenAI's and Azure's file batches, Anthropic's message batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from evalhub.lib.limits import LARGEST_RECORD
from evaluators.grading.stub_loop import ModelCall
from evaluators.model import Json
from evaluators.transcripts.claude_code import read_claude_usage
from runs.errors import ProviderError
from runs.targets.language_models.completion import (
    Asking,
    ModelAnswer,
    ModelFailed,
    answer_as_recording,
    calls_of,
    chat_messages,
    price_of_answer,
    tool_parameters,
    usage_of_answer,
)
from runs.targets.language_models.stub_chat import schemas_of
from runs.targets.providers.access import ModelAccess
from runs.targets.providers.base import BatchedAnswer, Batching, BatchProgress, Invocation
from runs.targets.providers.prices import price_note
from runs.targets.providers.retry import TimeLimit

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


@dataclass(frozen=True)
class MessageBatches:
    """Batches of Anthropic's Messages API."""

    access: ModelAccess

    def submit_batch(self, invocations: Mapping[str, Invocation]) -> str:
        """Submit all requests at once; a request with an unknown outcome isn't sent again."""

        def submit(litellm: Any) -> Any:
            requests = [
                {"custom_id": id, "params": request_body(litellm, self.access, invocation)}
                for id, invocation in invocations.items()
            ]
            return self._send("POST", "", {"requests": requests})

        return str(send_batch_request(self.access, submit, once=True).json()["id"])

    def poll_batch(self, external_id: str) -> BatchProgress:
        """Return the batch's progress; it ends even if every request failed."""
        batch = send_batch_request(self.access, lambda _: self._send("GET", f"/{external_id}")).json()
        return BatchProgress(ended=batch.get("processing_status") == "ended")

    def fetch_batch(self, external_id: str) -> Mapping[str, BatchedAnswer]:
        """Return the answers, or the reason for each request that failed, expired or was cancelled."""
        content = send_batch_request(
            self.access, lambda _: self._send("GET", f"/{external_id}/results")
        ).content
        return {
            str(row.get("custom_id")): self._answer(row.get("result") or {})
            for row in parse_json_lines(content)
        }

    def cancel_batch(self, external_id: str) -> None:
        """Ask Anthropic to stop the batch."""
        send_batch_request(self.access, lambda _: self._send("POST", f"/{external_id}/cancel"))

    def _send(self, method: str, path: str, body: Json = None) -> Any:
        import httpx

        from runs.sandbox.outbound_http import Deadline, DeadlineExceeded, make_client

        connection = self.access.connection
        address = str(connection.get("api_base") or "https://api.anthropic.com").rstrip("/")
        headers = {"x-api-key": str(connection["api_key"]), "anthropic-version": "2023-06-01"}
        try:
            with make_client(self.access.outbound, Deadline(SECONDS), longest=LARGEST_RECORD) as asking:
                response = asking.request(
                    method, f"{address}/v1/messages/batches{path}", json=body, headers=headers
                )
        except DeadlineExceeded as error:
            raise httpx.ReadTimeout(f"no answer within {SECONDS:g} s") from error
        return response.raise_for_status()

    def _answer(self, result: Mapping[str, Json]) -> BatchedAnswer:
        message = result.get("message")
        if result.get("type") != "succeeded" or not isinstance(message, dict):
            said = ((result.get("error") or {}).get("error") or {}).get("message") or "no reason given"
            return BatchedAnswer(error=f"The request ended as '{result.get('type')}': {said}.")
        return BatchedAnswer(answer_as_recording(self._read(message)))

    def _read(self, message: Mapping[str, Json]) -> ModelAnswer:
        counted = read_claude_usage(dict(message.get("usage") or {}))
        usage = counted if counted.input or counted.output else None
        cost, price = price_of_answer(self.access, usage, batch=True)
        parts = [part for part in message.get("content") or () if isinstance(part, dict)]
        text = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
        notes = (price_note(price),) if price else ()
        return ModelAnswer(
            text, self.access.model, usage, cost, price=price, notes=notes, calls=tuple(_calls(parts))
        )


def _calls(parts: list[dict[str, Json]]) -> Iterator[ModelCall]:
    for part in parts:
        if part.get("type") == "tool_use":
            yield ModelCall(str(part.get("name")), dict(part.get("input") or {}), part.get("id"))


def batching_of(access: ModelAccess) -> Batching | str:
    """Return the batch client of a model's provider, or why there is none."""
    # Providers with file batches, by litellm's names.
    if access.provider in ("openai", "azure"):
        return FileBatches(access)
    if access.provider == "anthropic":
        return MessageBatches(access)
    return f"evalhub doesn't support batches of the provider '{access.provider}'."


@dataclass(frozen=True)
class FileBatches:
    """Batches as JSON lines: upload a file, download a file."""

    access: ModelAccess

    def submit_batch(self, invocations: Mapping[str, Invocation]) -> str:
        """Submit the file and the batch; retry only the file after a broken connection."""

        def upload(litellm: Any) -> Any:
            lines = "".join(self._line(litellm, id, each) for id, each in invocations.items())
            content = ("evalhub.jsonl", lines.encode("utf-8", "replace"))
            return self._client().files.create(file=content, purpose="batch")

        file = self._call(upload)
        # A batch whose response was lost may exist: submitting again could pay twice.
        batch = self._call(
            lambda _: self._client().batches.create(
                completion_window="24h", endpoint=self._endpoint, input_file_id=file.id
            ),
            once=True,
        )
        return str(batch.id)

    def poll_batch(self, external_id: str) -> BatchProgress:
        """Return the batch's progress; an expired one has partial results."""
        batch = self._retrieve(external_id)
        if batch.status in ("failed", "cancelled", "cancelling"):
            return BatchProgress(
                failed=f"The batch {external_id} ended as '{batch.status}'{_reasons(batch)}."
            )
        return BatchProgress(ended=batch.status in ("completed", "expired"))

    def fetch_batch(self, external_id: str) -> Mapping[str, BatchedAnswer]:
        """Return the output file's answers and the error file's errors."""
        batch = self._retrieve(external_id)
        answers: dict[str, BatchedAnswer] = {}
        for file_id in (batch.error_file_id, batch.output_file_id):
            if file_id:
                answers.update(self._results(file_id))
        return answers

    def cancel_batch(self, external_id: str) -> None:
        """Ask the provider to stop the batch."""
        self._call(lambda _: self._client().batches.cancel(external_id))

    def _client(self) -> Any:
        """Return the provider's own client, because litellm's batch client bypasses checked connections."""
        import openai

        from runs.targets.language_models.litellm import client_session

        has = self.access.connection
        common: dict[str, Any] = {
            "api_key": has.get("api_key"),
            "http_client": client_session(),
            "timeout": SECONDS,
            "max_retries": 0,
        }
        if self.access.provider == "azure":
            return openai.AzureOpenAI(
                azure_endpoint=str(has["api_base"]), api_version=has.get("api_version"), **common
            )
        return openai.OpenAI(base_url=has.get("api_base"), **common)

    @property
    def _endpoint(self) -> str:
        return "/chat/completions" if self.access.provider == "azure" else "/v1/chat/completions"

    def _line(self, litellm: Any, id: str, invocation: Invocation) -> str:
        body = {**request_body(litellm, self.access, invocation), "model": self.access.bare_model}
        line = {"custom_id": id, "method": "POST", "url": self._endpoint, "body": body}
        return json.dumps(line, ensure_ascii=False) + "\n"

    def _retrieve(self, external_id: str) -> Any:
        return self._call(lambda _: self._client().batches.retrieve(external_id))

    def _call(self, call: Callable[[Any], T], *, once: bool = False) -> T:
        return send_batch_request(self.access, call, once=once)

    def _results(self, file_id: str) -> Iterator[tuple[str, BatchedAnswer]]:
        for row in parse_json_lines(self._call(lambda _: self._content(file_id))):
            yield str(row.get("custom_id")), self._answer(row)

    def _content(self, file_id: str) -> bytes:
        from runs.targets.language_models.litellm import allow_calls

        with allow_calls(self.access.outbound, longest=LARGEST_RECORD):
            content: bytes = self._client().files.content(file_id).content
        return content

    def _answer(self, row: Mapping[str, Json]) -> BatchedAnswer:
        response = row.get("response") or {}
        body = response.get("body") or {}
        if response.get("status_code") != 200 or not body.get("choices"):
            return BatchedAnswer(error=_refusal(row.get("error") or body.get("error"), response))
        return BatchedAnswer(answer_as_recording(self._read(body)))

    def _read(self, body: Mapping[str, Json]) -> ModelAnswer:
        from litellm.types.utils import ModelResponse

        message = ModelResponse(**body)
        notes: list[str] = []
        usage = usage_of_answer(getattr(message, "usage", None))
        cost, price = price_of_answer(self.access, usage, batch=True)
        choice = message.choices[0].message
        calls = calls_of(choice.tool_calls or (), notes)
        notes += [price_note(price)] if price else []
        return ModelAnswer(
            choice.content or "", self.access.model, usage, cost, price=price, notes=tuple(notes), calls=calls
        )


def _reasons(batch: Any) -> str:
    errors = getattr(batch.errors, "data", None) or []
    messages = [str(each.message) for each in errors[:3] if getattr(each, "message", None)]
    return f": {'; '.join(messages)}" if messages else ""


def _refusal(error: Json, response: Mapping[str, Json]) -> str:
    message = error.get("message") if isinstance(error, dict) else None
    status = response.get("status_code")
    return f"{f'HTTP {status}: ' if status else ''}{message or 'no answer and no reason'}".rstrip(".") + "."

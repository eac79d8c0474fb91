"""Submit many questions at once: OpenAI's and Azure's file batches, Anthropic's message batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from evalhub.lib.limits import LARGEST_RECORD
from evaluators.model import Json
from runs.targets.language_models.anthropic_batches import MessageBatches
from runs.targets.language_models.batch_requests import (
    SECONDS,
    parse_json_lines,
    request_body,
    send_batch_request,
)
from runs.targets.language_models.chat import answer_as_recording
from runs.targets.language_models.completion import ModelAnswer, calls_of, price_of_answer, usage_of_answer
from runs.targets.providers.access import ModelAccess
from runs.targets.providers.base import BatchedAnswer, Batching, BatchProgress, Invocation
from runs.targets.providers.prices import price_note

T = TypeVar("T")


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

        from runs.targets.language_models.litellm_outbound import client_session

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
        from runs.targets.language_models.litellm_outbound import allow_calls

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

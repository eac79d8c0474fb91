"""Anthropic's message batches. litellm only formats the requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evalhub.lib.limits import LARGEST_RECORD
from evaluators.grading.stub_loop import ModelCall
from evaluators.model import Json
from evaluators.transcripts.claude_code import usage_of
from runs.targets.language_models.batch_requests import (
    SECONDS,
    parse_json_lines,
    request_body,
    send_batch_request,
)
from runs.targets.language_models.chat import answer_as_recording
from runs.targets.language_models.completion import ModelAnswer, price_of_answer
from runs.targets.providers.access import ModelAccess
from runs.targets.providers.base import BatchedAnswer, BatchProgress, Invocation
from runs.targets.providers.prices import price_note


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

        from runs.sandbox.outbound_http import Deadline, DeadlineExceeded, client

        connection = self.access.connection
        address = str(connection.get("api_base") or "https://api.anthropic.com").rstrip("/")
        headers = {"x-api-key": str(connection["api_key"]), "anthropic-version": "2023-06-01"}
        try:
            with client(self.access.outbound, Deadline(SECONDS), longest=LARGEST_RECORD) as asking:
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
        counted = usage_of(dict(message.get("usage") or {}))
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

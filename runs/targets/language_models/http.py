"""An agent behind an HTTP endpoint (tool-forge eval runner, Agent Endpoint)."""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field

from evalhub.lib.limits import LARGEST_MESSAGE
from evaluators.model import Json
from evaluators.transcripts import chat
from evaluators.transcripts.paths import parse_path, place_item
from evaluators.transcripts.reading import UnreadableTranscript
from runs.errors import ProviderError
from runs.sandbox.sandbox import Containment
from runs.targets.providers.base import Availability, Invocation, Recording
from runs.targets.providers.options import PROGRAM_FIELDS, RETRY_FIELDS, Options, ResolvedTarget

if TYPE_CHECKING:  # It takes a tenth of a second.
    import httpx

ACCEPTED = "application/json, text/event-stream;q=0.9, text/plain;q=0.8"


def _path(value: str) -> str:
    parse_path(value)
    return value


Path = Annotated[str, AfterValidator(_path)]
Method = Literal["POST", "PUT", "PATCH", "GET"]
MethodInLower = Literal["post", "put", "patch", "get"]


class HttpOptions(Options):
    """The endpoint's address, what each request contains, and where its answer has the text."""

    unused_fields: ClassVar[frozenset[str]] = RETRY_FIELDS | PROGRAM_FIELDS

    secret_fields: ClassVar[frozenset[str]] = frozenset(("api_key",))

    url: str = Field(
        min_length=1, validation_alias=AliasChoices("url", "endpoint", "agent_endpoint", "base_url")
    )
    api_key: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    method: Annotated[
        Method, BeforeValidator(lambda name: str(name).upper(), json_schema_input_type=Method | MethodInLower)
    ] = "POST"
    body: dict[str, Json] = Field(default_factory=dict)
    """Fields of every request besides the message."""
    input_field: Path = "message"
    output_field: Path | None = None
    """Tried before the known field names."""
    tool_calls_field: Path | None = None
    session_field: Path | None = None
    """Field for the session's name; each trial has its own session."""
    stubs_field: Path | None = None
    """Field for stub responses, by tool."""


class Http:
    """Sends each message to the endpoint and reads its answer, in any known format."""

    works_in_folder = False

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        if not isinstance(target.options, HttpOptions):
            raise TypeError(f"{target.name} isn't an http target")
        self._target = target
        self._options = target.options
        self._outbound = containment.outbound
        if self._sends_key:
            self._outbound = self._outbound.with_key(target.options.url)

    def check(self) -> Availability:
        """Return whether the address is valid; only trials call it, and they report failures."""
        parts = urlsplit(self._options.url)
        if parts.scheme in ("http", "https") and parts.hostname:
            sentence = " ".join(filter(None, ("The first trial calls the address.", self._hint)))
            return Availability(True, sentence, tried=False)
        return Availability(False, f"{self._about()} has no address: give `url` as http://host:port/path.")

    def invoke(self, invocation: Invocation) -> Recording:
        """Return the endpoint's answer with the time from sending to its last byte.

        An answer that takes too long is a recording that is timed out. Raises `ProviderError` (kind
        `endpoint`) where the endpoint cannot be reached, answers other than 2xx, or what nobody can read.
        """
        from runs.sandbox.outbound_http import DeadlineExceeded, Stopped

        limit = self._options.time_limit(invocation.timeout_seconds)
        began = time.monotonic()
        try:
            body = self._send(invocation, limit)
        except DeadlineExceeded:
            return Recording(timed_out=True, seconds=limit, notes=(f"No answer within {limit:g} s.",))
        except Stopped:
            return Recording(cancelled=True, seconds=time.monotonic() - began)
        return self._recording(body, time.monotonic() - began)

    @property
    def _sends_key(self) -> bool:
        options = self._options
        values = options.headers.values()
        return bool(options.api_key) or any(
            secret in value for secret in self._target.secrets for value in values
        )

    @property
    def _hint(self) -> str:
        return self._outbound.hint(self._options.url)

    def _about(self) -> str:
        return f"The endpoint of the target '{self._target.name}'"

    def _send(self, invocation: Invocation, limit: float) -> bytes:
        import httpx

        from runs.sandbox.outbound_http import Deadline, make_client

        request = self._request(invocation)
        try:
            with (
                make_client(self._outbound, Deadline(limit, invocation.cancelled)) as asking,
                asking.stream(**request) as answer,
            ):
                return self._accept_answer(answer)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ProviderError(
                f"{self._about()} cannot be reached: {str(error).rstrip('.') or type(error).__name__}. "
                "Start it, or correct `url`.",
                kind="endpoint",
            ) from error

    def _request(self, invocation: Invocation) -> dict[str, Json]:
        options = self._options
        fields = place_item(options.body, options.input_field, invocation.prompt)
        if options.session_field:
            fields = place_item(fields, options.session_field, str(uuid.uuid4()))
        if options.stubs_field and invocation.spec.stubs is not None:
            fields = place_item(fields, options.stubs_field, dict(invocation.spec.stubs))
        headers = {"Accept": ACCEPTED}
        if options.api_key:
            headers["Authorization"] = f"Bearer {options.api_key}"
        asked: dict[str, Json] = {
            "method": options.method,
            "url": options.url,
            "headers": headers | options.headers,
        }
        if options.method == "GET":
            shown = {
                name: each if isinstance(each, str) else json.dumps(each) for name, each in fields.items()
            }
            return {**asked, "params": shown}
        return {**asked, "json": fields}

    def _accept_answer(self, answer: httpx.Response) -> bytes:
        """Return the body of an answer. Raises `ProviderError` if it isn't 2xx or is too long."""
        from runs.sandbox.outbound_http import AnswerTooLong, DeadlineExceeded

        try:
            body = answer.read()
        except DeadlineExceeded:
            if answer.is_success:
                raise
            # It has answered already, with its status.
            body = b""
        except AnswerTooLong as error:
            raise ProviderError(
                f"{self._about()} answered with more than {LARGEST_MESSAGE >> 20} MB. Let it answer shorter.",
                kind="endpoint",
            ) from error
        if answer.is_success:
            return body
        where = f" (to {answer.headers.get('location')})" if answer.is_redirect else ""
        excerpt = body.decode("utf-8", "replace").strip()[:300].rstrip(".") or "nothing"
        raise ProviderError(
            f"{self._about()} answered HTTP {answer.status_code} {answer.reason_phrase}{where}: {excerpt}. "
            "Look at the endpoint's own log, or correct `url`.",
            kind="endpoint",
        )

    def _recording(self, body: bytes, seconds: float) -> Recording:
        options = self._options
        try:
            transcript = chat.read_chat_answer(
                body, text_at=options.output_field or "", calls_at=options.tool_calls_field or ""
            )
        except UnreadableTranscript as error:
            raise ProviderError(f"{self._about()} gave no answer. {error}", kind="endpoint") from error
        if failed := next((event.text or "" for event in transcript.events if event.type == "error"), ""):
            # What it said before would be judged as if it were all.
            raise ProviderError(
                f"{self._about()} answered with an error: {failed[:300].rstrip('.')}. Look at the endpoint's own log.",
                kind="endpoint",
            )
        # With custom fields only this target can parse the body, so pass its content as events.
        has_own_fields = bool(options.output_field or options.tool_calls_field)
        return Recording(
            raw=body,
            parser="plain_text" if has_own_fields else "chat",
            events=chat.as_lines(transcript) if has_own_fields else None,
            answer=transcript.answer,
            exit_code=0,
            usage=transcript.usage,
            cost_usd=transcript.cost_usd,
            seconds=seconds,
            notes=tuple(filter(None, [self._hint])),
        )

"""Settings of models behind litellm, and its guarded clients, which reach only allowed addresses.

Azure OpenAI, Anthropic and Gemini have settings of their own; other models have their litellm id.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any, ClassVar, TypeVar

import httpx
from pydantic import AliasChoices, Field, field_validator

from evalhub.lib.limits import LARGEST_MESSAGE
from runs.sandbox.outbound import Outbound
from runs.sandbox.outbound_http import Backend, Transport
from runs.targets.providers.options import PROGRAM_FIELDS, Options

T = TypeVar("T")

_guarding, _guarded = Lock(), list[bool]()
_limits: ContextVar[tuple[Outbound, int]] = ContextVar(
    "limits", default=(Outbound(), LARGEST_MESSAGE)
)  # immutable
"""What this thread's request may call, by default public addresses only, and the bytes of an answer that it reads."""


class _ByOutbound(httpx.BaseTransport):
    """Reuses connections, but only for requests that may call the same addresses and read as much."""

    def __init__(self) -> None:
        self._transports: dict[tuple[Outbound, int], Transport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        limits = _limits.get()
        transport = self._transports.get(limits)
        if transport is None:
            created = Transport(Backend(lambda: limits[0]), limits[1])
            transport = self._transports.setdefault(limits, created)
        return transport.handle_request(request)

    def disconnect(self) -> None:
        """Close every connection; clients that share this transport only ever try to close it."""
        for transport in self._transports.values():
            transport.close()


class _SharedClient(httpx.Client):
    def close(self) -> None:
        """Stay open: libraries close the transport with each client that they discard."""


@cache
def _transport() -> _ByOutbound:
    shared = _ByOutbound()
    atexit.register(shared.disconnect)
    return shared


@cache
def client_session() -> httpx.Client:
    """Return this process's client for libraries that accept one; `calling` sets the addresses it may call."""
    return _SharedClient(transport=_transport(), trust_env=False, timeout=None)  # each request has its own


def guard(litellm: Any) -> None:
    """Make every client of litellm use checked connections; redirects are checked too.

    OpenAI's and Azure's clients take litellm's `client_session`, all others are made with its `sync_transport`.
    """
    shared = client_session()
    litellm.client_session = shared
    litellm.sync_transport = _transport()
    # litellm created these on import, before the checked transport existed.
    litellm.module_level_client.client = shared
    litellm.in_memory_llm_clients_cache.flush_cache()


def load_litellm() -> Any:
    """Return litellm, guarded; imported on first use because it takes seconds and a few hundred megabytes."""
    import litellm

    with _guarding:
        if not _guarded:
            litellm.suppress_debug_info = True
            litellm.telemetry = False
            guard(litellm)
            _guarded.append(True)
    return litellm


@contextmanager
def allow_calls(outbound: Outbound, *, longest: int = LARGEST_MESSAGE) -> Iterator[None]:
    """Let this thread's requests call the allowed addresses and read answers of up to `longest` bytes."""
    token = _limits.set((outbound, longest))
    try:
        yield
    finally:
        _limits.reset(token)


def call_within(outbound: Outbound, call: Callable[[], T]) -> T:
    """Return the result of a call that may reach these addresses."""
    with allow_calls(outbound):
        return call()


AZURE_VERSION = "2024-10-01-preview"
GEMINI_MODEL = "gemini-2.5-flash"


class ModelOptions(Options):
    """Settings of every model."""

    unused_fields: ClassVar[frozenset[str]] = PROGRAM_FIELDS

    secret_fields: ClassVar[frozenset[str]] = frozenset(("api_key",))

    temperature: float | None = None
    max_output_tokens: int | None = Field(
        default=None, gt=0, validation_alias=AliasChoices("max_output_tokens", "max_tokens")
    )


class AzureOptions(ModelOptions):
    """A deployment of Azure OpenAI."""

    resource_name: str = Field(
        min_length=1, validation_alias=AliasChoices("endpoint", "resource", "resource_name")
    )
    api_key: str = Field(min_length=1)
    deployment_name: str = Field(
        min_length=1, validation_alias=AliasChoices("deployment", "deployment_name", "model")
    )
    version: str = Field(default=AZURE_VERSION, validation_alias=AliasChoices("version", "api_version"))

    @property
    def asked_model(self) -> str:
        """The deployment, Azure's name for a model."""
        return self.deployment_name

    @field_validator("version")
    @classmethod
    def _bare_version(cls, value: str) -> str:
        return value.strip().removeprefix("api-version=").strip() or AZURE_VERSION


class AnthropicOptions(ModelOptions):
    """A model of Anthropic."""

    api_key: str = Field(min_length=1)
    model: str = Field(min_length=1, validation_alias=AliasChoices("model", "deployment", "variant"))
    thinking_budget: int | None = Field(default=None, gt=0)


class GeminiOptions(ModelOptions):
    """A model of Google."""

    api_key: str = Field(min_length=1)
    model: str = Field(default=GEMINI_MODEL, validation_alias=AliasChoices("model", "deployment", "variant"))

    @field_validator("model")
    @classmethod
    def _given(cls, value: str) -> str:
        return value.strip() or GEMINI_MODEL


class LitellmOptions(ModelOptions):
    """Any model by its litellm id; the key defaults to the provider's usual variable."""

    api_key: str | None = None
    model: str = Field(min_length=1)

"""An agent behind an HTTP endpoint."""

from __future__ import annotations

from typing import ClassVar

from pydantic import AliasChoices, Field

from runs.providers.options import Options


class HttpOptions(Options):
    """Where the endpoint is and what goes along with each request."""

    secret_fields: ClassVar[frozenset[str]] = frozenset(("api_key",))

    url: str = Field(
        min_length=1, validation_alias=AliasChoices("url", "endpoint", "agent_endpoint", "base_url")
    )
    api_key: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)

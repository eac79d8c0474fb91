"""Settings of models behind litellm: Azure OpenAI, Anthropic, Gemini and others that it supports."""

from __future__ import annotations

from typing import ClassVar

from pydantic import AliasChoices, Field, field_validator

from runs.targets.providers.options import PROGRAM_FIELDS, Options

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

"""What every kind of target may be configured with, and a target once its variables are resolved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StrictInt

from evaluators.model import Json, Price
from runs.containment.path_use import Use
from runs.labels import MOST_LABELS, RULE, is_label

_ROUTING = frozenset(("judge_target", "workers", "labels", "provider_batching"))
_CONTAINMENT = frozenset(("max_processes", "max_memory_mb", "egress"))
_RETRY = frozenset(
    (
        "max_retries",
        "retry_initial_delay_ms",
        "retry_max_delay_ms",
        "retry_backoff_factor",
        "retry_status_codes",
    )
)


def snake_case(name: str) -> str:
    """Return a field's name in the one spelling that is used inside."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).replace("-", "_").lower()


def camel_case(name: str) -> str:
    """Return a field's name as the AgentV specification spells it."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def spellings_given(fields: Mapping[str, Json]) -> dict[str, str]:
    """Return the key under which each field is written, by its name in snake_case.

    Of two spellings of a name the one with a value counts, and of two with values that in snake_case.
    """
    keys = sorted(map(str, fields), key=lambda key: (fields.get(key) is not None, key == snake_case(key)))
    return {snake_case(key): key for key in keys}


class Settings(BaseModel):
    """Base of what stands in a targets file: immutable; a name that does not exist is an error."""

    model_config = ConfigDict(
        # A process builds only the models of the kinds that it meets; all of them take a tenth of a second.
        defer_build=True,
        frozen=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        loc_by_alias=False,
        coerce_numbers_to_str=True,
    )

    def as_config(self) -> dict[str, Json]:
        """The settings under the names of the AgentV specification: camelCase, durations in milliseconds."""
        return {_config_name(name): _config_value(name, value) for name, value in self if value is not None}


def _as_list(value: Json) -> Json:
    """Return a list unchanged. Raises `ValueError` for one word, which pydantic would call no valid tuple."""
    if isinstance(value, str):
        raise ValueError("write a list, such as [gpu, macos]")
    return value


def _label(word: str) -> str:
    if not is_label(word):
        raise ValueError(f"'{word}' is no label. {RULE.rstrip('.')}")
    return word


Label = Annotated[str, AfterValidator(_label)]


class Retry(Settings):
    """How requests are repeated; None leaves it to the default (AgentV, Provider Retry Configuration)."""

    max_retries: int | None = None
    initial_delay_ms: float | None = None
    max_delay_ms: float | None = None
    backoff_factor: float | None = None
    retryable_status_codes: tuple[int, ...] | None = None


class Options(Settings):
    """Fields of every target. Each kind adds its own; other spellings are aliases, the first found wins."""

    secret_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields that must be references to variables: secrets are never stored."""
    opaque_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields whose text means nothing here: recorded answers."""
    refuses_unknown: ClassVar[bool] = False
    """Whether an unknown field is an error and not a lint."""
    runs_in_eval_folder: ClassVar[bool] = False
    """Whether `cwd` is the eval file's folder where nothing else is said."""

    path_fields: ClassVar[Mapping[str, Use]] = {}
    """Fields that name a path of the worker's machine, and what is done with it."""
    starts_in_workspace: ClassVar[frozenset[str]] = frozenset()
    """Those of them whose relative paths start from the workspace where the target has no folder of its own."""

    judge_target: str | None = None
    workers: int | None = Field(default=None, ge=1)
    labels: Annotated[tuple[Label, ...], BeforeValidator(_as_list)] = Field(
        default=(), max_length=MOST_LABELS
    )
    """What its worker must have; any worker will do without."""
    provider_batching: bool = False
    timeout_seconds: float | None = Field(default=None, gt=0)
    model: str | None = None
    args: tuple[str, ...] = Field(default=(), validation_alias=AliasChoices("args", "arguments"))
    env: dict[str, str] = Field(default_factory=dict)
    max_processes: int | None = Field(default=None, ge=1)
    """Of a trial, setup commands included; None is the default of `runs.containment.profiles`."""
    max_memory_mb: int | None = Field(default=None, ge=1)
    egress: Literal["none", "internet", "full"] | None = None
    """What the trial's agent and setup commands may reach; None is what the worker allows."""
    base_url: str | None = None
    max_retries: int | None = Field(default=None, ge=0)
    retry_initial_delay_ms: float | None = Field(default=None, ge=0)
    retry_max_delay_ms: float | None = Field(default=None, ge=0)
    retry_backoff_factor: float | None = Field(default=None, ge=1)
    retry_status_codes: tuple[StrictInt, ...] | None = None

    @property
    def asked_model(self) -> str:
        """The model that does the task where a run names none; empty where the target does not say."""
        return self.model or ""

    @property
    def retry(self) -> Retry | None:
        """The retry settings, None where none is given."""
        retry = Retry(
            max_retries=self.max_retries,
            initial_delay_ms=self.retry_initial_delay_ms,
            max_delay_ms=self.retry_max_delay_ms,
            backoff_factor=self.retry_backoff_factor,
            retryable_status_codes=self.retry_status_codes or None,
        )
        return retry if retry.as_config() else None

    def as_config(self) -> dict[str, Json]:
        """The provider's settings without what routes, repeats and contains."""
        left_out = {camel_case(name) for name in _ROUTING | _RETRY | _CONTAINMENT}
        return {name: value for name, value in super().as_config().items() if name not in left_out}

    @classmethod
    def spellings(cls) -> Mapping[str, tuple[str, ...]]:
        """Names by which each field may be written, in snake_case and in the order of precedence."""
        return {name: _choices(name, field.validation_alias) for name, field in cls.model_fields.items()}


@dataclass(frozen=True)
class ResolvedTarget:
    """A target that can be used: every reference is replaced by the value of its variable."""

    name: str
    kind: str
    options: Options
    base_folder: str = ""
    """Folder that relative paths start from."""
    secrets: tuple[str, ...] = ()
    """Values of variables, to be masked before anything is stored."""
    prices: tuple[Price, ...] = ()
    """The project's own prices of models."""


def _choices(name: str, alias: object) -> tuple[str, ...]:
    if isinstance(alias, AliasChoices):
        return tuple(choice for choice in alias.choices if isinstance(choice, str))
    return (name,)


def _config_name(name: str) -> str:
    return camel_case(name.removesuffix("_seconds") + "_ms" if name.endswith("_seconds") else name)


def _config_value(name: str, value: Json) -> Json:
    if name.endswith("_seconds"):
        return int(value * 1000)
    if isinstance(value, Settings):
        return value.as_config()
    return list(value) if isinstance(value, tuple) else value

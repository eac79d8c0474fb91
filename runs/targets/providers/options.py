"""Settings of every kind of target, and targets with their variables resolved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StrictInt

from evaluators.model import Json, Price
from evaluators.patterns import compile_pattern
from runs.labels import LABEL, MOST_LABELS, RULE, is_label
from runs.sandbox.target_roots import Use

_ROUTING = frozenset(
    (
        "judge_target",
        "workers",
        "labels",
        "provider_batching",
        "guidance_file",
        "skills_folder",
        "command_pattern",
    )
)
_CONTAINMENT = frozenset(("max_processes", "max_memory_mb", "egress"))
PROGRAM_FIELDS = frozenset(("args", "env"))
RETRY_FIELDS = frozenset(
    (
        "max_retries",
        "retry_initial_delay_ms",
        "retry_max_delay_ms",
        "retry_backoff_factor",
        "retry_status_codes",
    )
)


def snake_case(name: str) -> str:
    """Return a field's name in the spelling used internally."""
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


class TargetModel(BaseModel):
    """Base of the models in a targets file: immutable; an unknown field is an error."""

    model_config = ConfigDict(
        # Built on first use: a process needs few of the kinds, and building all is slow.
        defer_build=True,
        frozen=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        loc_by_alias=False,
        coerce_numbers_to_str=True,
    )

    def as_config(self) -> dict[str, Json]:
        """Return the settings by the AgentV specification's names: camelCase, durations in milliseconds."""
        return {_config_name(name): _config_value(name, value) for name, value in self if value is not None}


def _as_list(value: Json) -> Json:
    """Return a list unchanged. Raises `ValueError` for a single word, with a clearer message than pydantic's."""
    if isinstance(value, str):
        raise ValueError("write a list, such as [gpu, macos]")
    return value


def _label(word: str) -> str:
    if not is_label(word):
        raise ValueError(f"'{word}' isn't a valid label. {RULE.rstrip('.')}")
    return word


Label = Annotated[str, AfterValidator(_label), Field(json_schema_extra={"pattern": f"^{LABEL.pattern}$"})]
NO_COPY = "none"


def _guidance_file(value: Json) -> Json:
    """Return the name of a guidance file; YAML reads `off` and `no` as false. Raises `ValueError` for a path outside."""
    if value is False:
        return NO_COPY
    if isinstance(value, str) and (not value or value.startswith("/") or ".." in value.split("/")):
        raise ValueError("write a file name in the workspace, such as CLAUDE.md, or none")
    return value


def _skills_folder(value: str | None) -> str | None:
    """Return a folder of the workspace without its last slash. Raises `ValueError` for a path outside."""
    if value is None:
        return None
    folder = value.strip().removeprefix("./").rstrip("/")
    if not folder or folder.startswith(("/", "~")) or ".." in folder.split("/"):
        raise ValueError("write a folder in the workspace, such as .claude/skills")
    return folder


def _pattern(pattern: str | None) -> str | None:
    """Return a pattern. Raises `ValueError` for a text that isn't a regular expression."""
    if pattern:
        compile_pattern(pattern)
    return pattern


class Retry(TargetModel):
    """How to retry requests; None is the default (AgentV, Provider Retry Configuration)."""

    max_retries: int | None = None
    initial_delay_ms: float | None = None
    max_delay_ms: float | None = None
    backoff_factor: float | None = None
    retryable_status_codes: tuple[int, ...] | None = None


def _retry_spellings(*names: str) -> AliasChoices:
    """Return a retry field's spellings: the specification's names, with or without `retry_`."""
    return AliasChoices(*names, *(f"retry_{name}" for name in names))


class Options(TargetModel):
    """Fields of every target; each kind adds its own. Other spellings are aliases; the first one present wins."""

    secret_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields that must be references to variables: secrets are never stored."""
    opaque_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields whose text isn't interpreted: recorded answers."""
    refuses_unknown: ClassVar[bool] = False
    """Whether an unknown or unused field is an error and not a lint."""
    unused_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields of every target that this kind has no use for."""
    limits_turns: ClassVar[bool] = False
    """Whether it can limit its agent's turns, or has an answer without any."""

    path_fields: ClassVar[Mapping[str, Use]] = {}
    """Fields with a path on the worker's machine, and how it is used."""
    starts_in_workspace: ClassVar[frozenset[str]] = frozenset()
    """Those whose relative paths start from the workspace if the target has no folder."""

    judge_target: str | None = None
    """The judge if neither the run nor an evaluator names one."""
    workers: int | None = Field(
        default=None, ge=1, validation_alias=AliasChoices("max_concurrency", "workers")
    )
    """The most trials at once, over all runs."""
    labels: Annotated[tuple[Label, ...], BeforeValidator(_as_list)] = Field(
        default=(), max_length=MOST_LABELS
    )
    """Labels that its worker must have; without any, every worker fits."""
    provider_batching: bool = False
    """Whether all cases of a run are sent as one batch."""
    guidance_file: Annotated[
        str | None, BeforeValidator(_guidance_file, json_schema_input_type=str | Literal[False] | None)
    ] = None
    """The file that its agent reads: guidance is also laid under this name. `none` lays no copy."""
    skills_folder: Annotated[str | None, AfterValidator(_skills_folder)] = None
    """The folder where its agent looks for skills; they also lie in `.agents/skills`."""
    command_pattern: Annotated[str | None, AfterValidator(_pattern)] = None
    """Finds the tool's commands in scenarios without a pattern of their own."""
    timeout_seconds: float | None = Field(default=None, gt=0)
    """Time limit of the agent in seconds."""
    model: str | None = None
    """The model, as the provider names it."""
    args: tuple[str, ...] = Field(default=(), validation_alias=AliasChoices("args", "arguments"))
    """Further arguments of the program."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables of the program."""
    max_processes: int | None = Field(default=None, ge=1)
    """Limits of a trial, including its setup commands; None is the default of `runs.sandbox.profiles`."""
    max_memory_mb: int | None = Field(default=None, ge=1)
    egress: Literal["none", "internet", "full"] | None = None
    """Network access of the trial's agent and setup commands; None is what the worker allows."""
    base_url: str | None = None
    """The address of the model service."""
    max_retries: int | None = Field(default=None, ge=0, validation_alias=_retry_spellings("max_retries"))
    """How often a failed request is tried again."""
    retry_initial_delay_ms: float | None = Field(
        default=None, ge=0, validation_alias=_retry_spellings("initial_delay_ms")
    )
    retry_max_delay_ms: float | None = Field(
        default=None, ge=0, validation_alias=_retry_spellings("max_delay_ms")
    )
    retry_backoff_factor: float | None = Field(
        default=None, ge=1, validation_alias=_retry_spellings("backoff_factor")
    )
    retry_status_codes: tuple[StrictInt, ...] | None = Field(
        default=None, validation_alias=_retry_spellings("retryable_status_codes", "status_codes")
    )

    @property
    def asked_model(self) -> str:
        """The model for the task if the run names none; empty if the target has none either."""
        return self.model or ""

    def time_limit(self, seconds: float) -> float:
        """Return a trial's time limit in seconds: the lower of its own and the target's."""
        return min(seconds, self.timeout_seconds or seconds)

    @property
    def retry(self) -> Retry | None:
        """The retry settings; None if there are none."""
        retry = Retry(
            max_retries=self.max_retries,
            initial_delay_ms=self.retry_initial_delay_ms,
            max_delay_ms=self.retry_max_delay_ms,
            backoff_factor=self.retry_backoff_factor,
            retryable_status_codes=self.retry_status_codes or None,
        )
        return retry if retry.as_config() else None

    def as_config(self) -> dict[str, Json]:
        """Return the provider's settings without routing, retries and containment."""
        left_out = {camel_case(name) for name in _ROUTING | RETRY_FIELDS | _CONTAINMENT}
        return {name: value for name, value in super().as_config().items() if name not in left_out}

    @classmethod
    def spellings(cls) -> Mapping[str, tuple[str, ...]]:
        """Return the accepted names of each field, in snake_case and by precedence."""
        return {name: _choices(name, field.validation_alias) for name, field in cls.model_fields.items()}


@dataclass(frozen=True)
class ResolvedTarget:
    """A target with every reference replaced by the value of its variable."""

    name: str
    kind: str
    options: Options
    base_folder: str = ""
    """Folder that relative paths start from."""
    secrets: tuple[str, ...] = ()
    """Values of variables, masked before anything is stored."""
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
    if isinstance(value, TargetModel):
        return value.as_config()
    return list(value) if isinstance(value, tuple) else value

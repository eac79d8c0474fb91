"""The values that pass between the layers: transcripts, scores, judgings.

They are plain and immutable: two values with the same content are equal. Their database ids live in
`runs.models`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import force_setattr
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    WithJsonSchema,
    model_serializer,
)
from pydantic_core import PydanticKnownError

CHECKED = {"is_checked": True}
"""The context in which to validate what another process has checked: patterns aren't compiled again."""
FROM_FILE = {"is_from_file": True}
"""The context in which files are read: what they write is not empty."""


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _filled(text: str, info: ValidationInfo) -> str:
    if info.context == FROM_FILE and not text.strip():
        raise PydanticKnownError("string_too_short", {"min_length": 1})
    return text


Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
"""Text with a character that isn't a space."""
TextOrNone = Annotated[
    str, AfterValidator(_filled), WithJsonSchema({"type": "string", "minLength": 1, "pattern": r"\S"})
]
"""Text that may be left out, which is stored as empty; a file that writes it must not leave it empty."""
Key = Annotated[Text, Field(max_length=200)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
AS_TUPLE = BeforeValidator(_as_tuple)
"""Takes a list for a tuple where types are strict."""


class StrictModel(BaseModel):
    """An immutable value that rejects unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Kind(StrictModel):
    """One of several kinds, named by `type` in the file."""

    type: str

    @model_serializer(mode="wrap")
    def _with_type(self, dump: SerializerFunctionWrapHandler) -> dict[str, Json]:
        """Keep `type` even when defaults are left out, because it selects the class."""
        return {"type": self.type, **dump(self)}


Json = Any
"""A decoded JSON value."""

Outcome = Literal["pass", "fail", "error"]
EventType = Literal["message", "model_step", "tool_call", "tool_result", "error", "raw"]
Source = Literal["recorded", "events", "stream", "trace", "transcript", "none"]
End = Literal["recorded", "reported", "estimated", "unknown"]
"""How the end of a command is known: from the kernel, from the agent's events, from text, or not at all."""
NotRun = Literal["", "rejected", "denied", "cancelled", "invalid"]
"""Why a call never ran: a person rejected it, a rule or hook denied it, it was cancelled, or its input was invalid."""
NOT_RUN: Mapping[str, NotRun] = {
    "rejected": "rejected",
    "denied": "denied",
    "cancelled": "cancelled",
    "invalid": "invalid",
}
"""Each reason by its name, as structured events and traces give it in `not_run`."""
LayerName = Literal["interaction", "gates", "assertions", "evaluators", "scripts", "judge"]


MOST_TOKENS = 10**12
"""More than a trial uses; so that sums of what agents report can be stored."""
MOST_USD = 1_000_000.0


def plausible_cost(reported: Json) -> float | None:
    """Return a cost in US dollars that an agent or a service reports, None if it is none or impossible."""
    if isinstance(reported, bool) or not isinstance(reported, int | float):
        return None
    return float(reported) if 0 <= reported <= MOST_USD else None


class Usage(Struct, frozen=True):
    """Tokens read and written by a model: 0 to `MOST_TOKENS`, whatever is reported.

    `input` includes what was read from and written to the provider's cache, `output` includes reasoning.
    """

    input: int = 0
    output: int = 0
    estimated: bool = False
    """Estimated from the length of the text, not reported by the provider."""
    cache_read: int = 0
    """Input tokens read from the cache."""
    cache_write: int = 0
    """Input tokens written to the cache, for 5 minutes or without a known lifetime."""
    cache_write_1h: int = 0
    """Input tokens written to the cache for an hour."""
    reasoning: int = 0
    """Output tokens of reasoning, where the provider counts them apart."""
    output_unknown: bool = False
    """Whether the recorder doesn't know the output tokens; they are 0 here, and not measured."""

    @property
    def known_output(self) -> int | None:
        """Output tokens; None if unknown."""
        return None if self.output_unknown else self.output

    def __post_init__(self) -> None:
        left = {"input": MOST_TOKENS, "output": MOST_TOKENS}
        for name, whole in _PARTS:
            reported = getattr(self, name)
            most = left[whole]
            if not 0 <= reported <= most:
                force_setattr(self, name, min(max(reported, 0), most))
            left[whole] = getattr(self, name) if name == whole else most - getattr(self, name)

    @property
    def fresh(self) -> int:
        """Input tokens that were neither read from nor written to the cache."""
        return self.input - self.cache_read - self.cache_write - self.cache_write_1h


_PARTS = (
    ("input", "input"),
    ("cache_read", "input"),
    ("cache_write", "input"),
    ("cache_write_1h", "input"),
    ("output", "output"),
    ("reasoning", "output"),
)
"""The counts of a usage with the whole that each is part of; wholes come first."""


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """Return the sum of the known usages; None if none is known."""
    known = [each for each in usages if each is not None]
    if not known:
        return None
    counts = {name: sum(getattr(each, name) for each in known) for name, _ in _PARTS}
    return Usage(
        **counts,
        estimated=any(each.estimated for each in known),
        output_unknown=any(each.output_unknown for each in known),
    )


class Price(Struct, frozen=True, omit_defaults=True):
    """The price of a model's tokens, in US dollars per million.

    None is a rate that isn't known: cached input then counts as fresh input, and reasoning as other output.
    """

    model: str
    input_per_million: float
    output_per_million: float
    source: Literal["project", "suite", "litellm"] = "project"
    """Where the price comes from: the project's own table, the suite's settings, or litellm's price map."""
    since: str = ""
    """The first day the price applies, in ISO 8601."""
    cache_read_per_million: float | None = None
    cache_write_per_million: float | None = None
    cache_write_1h_per_million: float | None = None
    reasoning_per_million: float | None = None


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    """One step of a trial, from any recorder.

    The types are those of AgentV's trace model, plus `raw` for events that no reader recognizes.
    """

    type: EventType
    id: str | None = None
    """Pairs a tool_call with its tool_result; without it they pair in order."""
    name: str | None = None
    """The called tool."""
    command: str | None = None
    """The shell command line, if the call runs one."""
    input: Json = None
    output: Json = None
    text: str | None = None
    role: str | None = None
    exit_code: int | None = None
    success: bool | None = None
    timestamp: str | None = None
    seconds: float | None = None
    metadata: dict[str, Json] = field(default_factory=dict)
    usage: Usage | None = None
    """The tokens of the model's turn that begins with this event, if the recorder knows them."""
    not_run: NotRun = ""
    """Why the call never ran, on the call or on its result; empty for a call that ran."""


class Transcript(Struct, frozen=True, omit_defaults=True):
    """Everything recorded about how an agent worked."""

    events: tuple[Event, ...] = ()
    source: Source = "none"
    """Where the events come from; `transcript` is plain text without events."""
    text: str = ""
    """The raw output as text; layer 1 reads it when there are no events."""
    answer: str = ""
    usage: Usage | None = None
    usage_by_model: dict[str, Usage] = field(default_factory=dict)
    """The usage by the model that the recorder names, if it names several or the run may name none."""
    cost_usd: float | None = None
    problems: tuple[str, ...] = ()
    """What the reader could not understand, one sentence each."""
    unknown_events: int = 0
    unseen_agents: int = 0
    """Sub-agents that the stream says were started, and whose calls it does not hold."""


@dataclass(frozen=True, kw_only=True)
class AgentResult:
    """What became of an agent: its answer, and what it took."""

    answer: str | None = None
    """None if unknown."""
    exit_code: int | None = None
    timed_out: bool = False
    seconds: float | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    """What the agent cost, in US dollars; None if unknown."""

    @property
    def facts(self) -> dict[str, Any]:
        """Return these fields alone by name, for a class that has further ones."""
        return {each.name: getattr(self, each.name) for each in fields(AgentResult)}


class FoundCommand(Struct, frozen=True, omit_defaults=True, gc=False):
    """A command of the tool under test, not numbered yet."""

    line: str
    """The normalised command line."""
    subcommand: str | None = None
    exit_code: int | None = None
    """None means unknown: neither an error nor a failed attempt."""
    failed: bool = False
    help: bool = False
    helps: str | None = None
    """The subcommand a help call asks about."""
    failure: str = ""
    """Why a call of an MCP server failed (`mcp_calls.McpFailure`); empty for others."""
    end: End = "reported"
    """How its end is known; `unknown` if neither exit code nor failure is."""
    at_least: bool = False
    """Whether it ran once or more, such as in a loop."""
    seconds: float | None = None
    """The time it ran, if recorded."""
    printed_error: bool = False
    """Whether its end is unknown and its output has an error message, which may be another program's."""


class Command(FoundCommand, frozen=True, kw_only=True, gc=False):
    """One command of the tool under test, numbered in the order of execution."""

    n: int
    retry_of: int | None = None
    """The failed command of the same subcommand before this one."""
    event: int | None = None
    """Index of the tool_call in the transcript's events, or the line number of its text."""


class Judging(Struct, frozen=True, omit_defaults=True):
    """One call of a judge, with everything a person needs to review it."""

    score: float | None = None
    passed: bool | None = None
    recomputed: float | None = None
    """The score computed from the rubric's weights; the reported score decides."""
    mismatch: bool = False
    criteria: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    """The judge's reason for each criterion, where it gave one."""
    missing: tuple[str, ...] = ()
    positives: tuple[str, ...] = ()
    """Highlights or hits."""
    negatives: tuple[str, ...] = ()
    """Issues or misses."""
    reasoning: str = ""
    confidence: float | None = None
    model: str = ""
    rubric: str = ""
    """The hash of the rubric or prompt template; with the model, the judge's version."""
    system_prompt: str = ""
    user_prompt: str = ""
    raw_answer: str = ""
    repaired: bool = False
    usage: Usage | None = None
    cost_usd: float | None = None
    price: Price | None = None
    """The price behind the cost, if known."""
    seconds: float = 0.0
    error: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Events before the answer, such as failed attempts."""


class Score(Struct, frozen=True, omit_defaults=True):
    """One value of a measure in a trial."""

    layer: LayerName
    name: str
    value: float | None = None
    """None means *not measured*; never NaN."""
    passed: bool | None = None
    """None means the score informs and does not decide."""
    message: str = ""
    detail: dict[str, Json] = field(default_factory=dict)
    error: str = ""
    """Why there is no result. It makes the trial an error, unless another score fails it."""
    weight: float = 1.0
    judging: Judging | None = None


class CommandResult(Struct, frozen=True):
    """The result of a command in the workspace."""

    exit_code: int | None
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    truncated: bool = False
    """The output was longer than the limit; its beginning and end are kept."""
    seconds: float = 0.0
    error: str = ""
    """Why the command did not start or was stopped, in a sentence."""


class FileUnavailable(Exception):
    """A workspace file cannot be read; the message names the path and the reason."""


class Workspace(Protocol):
    """The directory as the agent left it; it can run commands."""

    def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        network: bool = False,
    ) -> CommandResult:
        """Run a shell command in the workspace. Never raises."""
        ...

    def read(self, path: str) -> str:
        """Return a text file. Raises `FileUnavailable` if it is missing, outside, too large or not text."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a path exists. Raises `FileUnavailable` if it leads outside."""
        ...


class CompletionRequest(Struct, frozen=True):
    """One prompt for a model."""

    user: str
    system: str = ""
    model: str = ""
    """A target's name or a litellm model id; empty for the judge's default."""
    key: str = ""
    """The scenario's key, by which recorded judges answer."""


class Completion(Struct, frozen=True):
    """A model's answer."""

    text: str
    model: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None
    seconds: float = 0.0
    price: Price | None = None
    notes: tuple[str, ...] = ()
    cut_off: bool = False
    """Whether the answer reached the model's token limit."""


class CompletionError(Exception):
    """The model did not answer; the message says why and what to do."""


class Complete(Protocol):
    """Send a prompt to a model. Raises `CompletionError`."""

    def __call__(self, request: CompletionRequest) -> Completion: ...


def same_model(one: str, other: str) -> bool:
    """Return whether two names mean the same model, ignoring a provider prefix as in litellm's ids."""
    return bool(one) and one.rpartition("/")[2] == other.rpartition("/")[2]

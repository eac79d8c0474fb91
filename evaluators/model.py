"""The values that pass between the layers: transcripts, scores, judgings.

They are plain and immutable: two values with the same content are equal, and what identifies
them in the warehouse lives in `runs.models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct, field

Json = Any
"""A decoded JSON value."""

Outcome = Literal["pass", "fail", "error"]
EventType = Literal["message", "model_step", "tool_call", "tool_result", "error", "raw"]
Source = Literal["events", "stream", "trace", "transcript", "none"]
LayerName = Literal["interaction", "gates", "assertions", "evaluators", "scripts", "judge"]


class Usage(Struct, frozen=True):
    """Tokens that a model read and wrote."""

    input: int = 0
    output: int = 0
    estimated: bool = False
    """Counted by length, not reported by the provider."""


class Price(Struct, frozen=True, omit_defaults=True):
    """What a model's tokens cost, in US dollars per million."""

    model: str
    input_per_million: float
    output_per_million: float
    source: Literal["project", "litellm"] = "project"
    """Whose price it is: of the project's own table, or of the map that litellm brings."""
    since: str = ""
    """The first day on which it holds, in ISO 8601."""


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    """One step of a trial, whoever recorded it.

    The types are those of the trace model of the AgentV specification, and `raw` for what no reader knows.
    """

    type: EventType
    id: str | None = None
    """Pairs a tool_call with its tool_result; without it they pair in order."""
    name: str | None = None
    """The tool that is called."""
    command: str | None = None
    """The shell command line, where the call is one."""
    input: Json = None
    output: Json = None
    text: str | None = None
    role: str | None = None
    exit_code: int | None = None
    success: bool | None = None
    timestamp: str | None = None
    seconds: float | None = None
    metadata: dict[str, Json] = field(default_factory=dict)


class Transcript(Struct, frozen=True, omit_defaults=True):
    """What is known of how an agent worked."""

    events: tuple[Event, ...] = ()
    source: Source = "none"
    """Where the events come from; `transcript` is text, which has none."""
    text: str = ""
    """The raw output as text, for the fallback of layer 1."""
    answer: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None
    problems: tuple[str, ...] = ()
    """What the reader could not make sense of, in sentences."""
    unknown_events: int = 0


class Command(Struct, frozen=True, omit_defaults=True, gc=False):
    """One command of the tool under test, in the order in which the agent ran them."""

    n: int
    line: str
    """The normalised command line."""
    subcommand: str | None = None
    exit_code: int | None = None
    """None is unknown, which is neither an error nor a failed try."""
    failed: bool = False
    help: bool = False
    helps: str | None = None
    """The subcommand that a help call asks about."""
    retry_of: int | None = None
    """The failed command of the same subcommand that this one follows."""
    event: int | None = None
    """Index of the tool_call in the transcript's events, or the line number of its text."""


class Judging(Struct, frozen=True, omit_defaults=True):
    """One call of a judge, with everything a person needs to agree or disagree with it."""

    score: float | None = None
    passed: bool | None = None
    recomputed: float | None = None
    """The score by the rubric's weights; the reported one decides."""
    mismatch: bool = False
    criteria: dict[str, float] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    positives: tuple[str, ...] = ()
    """Highlights or hits."""
    negatives: tuple[str, ...] = ()
    """Issues or misses."""
    reasoning: str = ""
    confidence: float | None = None
    model: str = ""
    system_prompt: str = ""
    user_prompt: str = ""
    raw_answer: str = ""
    repaired: bool = False
    usage: Usage | None = None
    cost_usd: float | None = None
    price: Price | None = None
    """The price that the cost was made with, where it is known."""
    seconds: float = 0.0
    error: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What happened on the way to the answer, such as attempts that failed."""


class Score(Struct, frozen=True, omit_defaults=True):
    """One value of a measure in a trial."""

    layer: LayerName
    name: str
    value: float | None = None
    """None is *not measured*, never NaN."""
    passed: bool | None = None
    """None informs without deciding."""
    message: str = ""
    detail: dict[str, Json] = field(default_factory=dict)
    error: str = ""
    """Why the layer could not say: this makes the trial an error unless something failed anyway."""
    weight: float = 1.0
    judging: Judging | None = None


class CommandResult(Struct, frozen=True):
    """How a command in the workspace ended."""

    exit_code: int | None
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    truncated: bool = False
    """More was printed than is kept; the head and the tail are here."""
    seconds: float = 0.0
    error: str = ""
    """Why it could not be started or was stopped, in a sentence."""


class FileUnavailable(Exception):
    """A file of the workspace cannot be read; the message says why, with the path."""


class Workspace(Protocol):
    """The directory as the agent left it, and the right to run commands in it."""

    def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        network: bool = False,
    ) -> CommandResult:
        """Run a shell command in the workspace. Never raises for what the command does."""
        ...

    def read(self, path: str) -> str:
        """Return a text file. Raises `FileUnavailable` when missing, outside, too large or not text."""
        ...

    def exists(self, path: str) -> bool:
        """Tell whether a path exists. Raises `FileUnavailable` when it leads outside."""
        ...


class CompletionRequest(Struct, frozen=True):
    """What is asked of a model."""

    user: str
    system: str = ""
    model: str = ""
    """A target's name or a litellm model id; empty for the judge's own default."""


class Completion(Struct, frozen=True):
    """What a model answered."""

    text: str
    model: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None
    seconds: float = 0.0
    price: Price | None = None
    notes: tuple[str, ...] = ()


class CompletionError(Exception):
    """A model could not be asked or did not answer; the message says why and what to do."""


class Complete(Protocol):
    """Asks a model. Raises `CompletionError`."""

    def __call__(self, request: CompletionRequest) -> Completion: ...


def same_model(one: str, other: str) -> bool:
    """Tell whether two names mean one model; a provider before it, as litellm's ids have one, does not matter."""
    return bool(one) and one.rpartition("/")[2] == other.rpartition("/")[2]

"""What a provider is given and what it brings back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from evaluators.model import Json, Usage
from evaluators.transcripts.latest import CallsTold
from runs.providers.stub_chat import ToolSchema

Look = Callable[[], CallsTold]
"""Returns what is known of an agent's calls by now. Another thread asks it."""


@dataclass(frozen=True)
class Invocation:
    """One task for an agent or a model."""

    prompt: str
    key: str
    """The scenario's key (`{EVAL_ID}`)."""
    workspace: Path
    """Directory of the trial; exists, holds the fixture and the guidance."""
    scratch: Path
    """Directory outside the workspace for what the provider itself needs (events file, output file, logs)."""
    timeout_seconds: float
    model: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    """`target.env` of the scenario and `LLM_TOOL_TEST_*`, resolved."""
    attempt: int = 0
    """Earlier starts of this trial (`{ATTEMPT}`)."""
    trial: int = 0
    """Index of the trial within its scenario and run."""
    guidelines: str = ""
    files: tuple[Path, ...] = ()
    guideline_files: tuple[Path, ...] = ()
    """The guidelines as files, for an agent that opens them itself."""
    bundle: Path | None = None
    """The files that came with the scenario file, beside the workspace; None where none did."""
    folder: Path | None = None
    """The scenario file's own folder among them."""
    messages: tuple[Json, ...] = ()
    stubs: Mapping[str, Json] | None = None
    """What each tool answers, for a target that takes stubs; None is no stub mode."""
    tools: tuple[ToolSchema, ...] = ()
    """What a model is offered that calls none itself: its first calls are the answer."""
    in_workspace: bool = True
    """Whether gates look at what is left in the workspace: then an agent that fails or is out of time is judged
    all the same. Without, a trial is a question and its answer, and has none where the program failed."""
    cancelled: Callable[[], bool] = lambda: False
    """Asked a few times a second while a process runs; True ends it."""
    watch: Callable[[Look], None] = lambda look: None
    """Takes what tells of the agent's calls while it works; a provider that cannot tell of them gives nothing."""


@dataclass(frozen=True)
class Recording:
    """What came back, unread: `evaluators.transcripts` reads it."""

    raw: bytes = b""
    """Everything the agent printed, as it came."""
    parser: str = "plain_text"
    """Name of the transcript reader for `raw`."""
    events: bytes | None = None
    """Structured events beside it (JSON lines), preferred over `raw` where they hold a tool call or are a trace."""
    events_are_trace: bool = False
    """Whether `events` are a trace that the answer held (AgentV), which counts also without a call."""
    answer: str | None = None
    """The final answer where the provider knows it; else the reader finds it."""
    exit_code: int | None = None
    timed_out: bool = False
    cancelled: bool = False
    usage: Usage | None = None
    cost_usd: float | None = None
    seconds: float = 0.0
    truncated: bool = False
    stderr: str = ""
    logs: Mapping[str, bytes] = field(default_factory=dict)
    """What else is kept, by name: content, for a path may lead elsewhere by the time it is opened."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Availability:
    """Whether a target can work here, and what to do if not; `version` is the provider program's own."""

    available: bool
    sentence: str = ""
    version: str = ""


class Provider(Protocol):
    """Talks to one kind of target. Made from a resolved target; holds no state between trials."""

    works_in_folder: bool
    """Whether it does its work in the trial's directories; one that only answers needs none."""

    def check(self) -> Availability: ...

    def invoke(self, invocation: Invocation) -> Recording: ...


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch is."""

    ended: bool = False
    """Whether there are results to fetch, if not of every request."""
    failed: str = ""
    """Why nothing will come of it, in a sentence."""


@dataclass(frozen=True)
class BatchedAnswer:
    """What a batch brought for one request: a recording, or a sentence that says why there is none."""

    recording: Recording | None = None
    error: str = ""


class Batching(Protocol):
    """Hands in many tasks at once and fetches what became of them later. Every call may raise `ProviderError`."""

    def submit_batch(self, invocations: Mapping[str, Invocation]) -> str:
        """Hand in the tasks, by ids of their own, and return the batch's id."""
        ...

    def poll_batch(self, external_id: str) -> BatchProgress: ...

    def fetch_batch(self, external_id: str) -> Mapping[str, BatchedAnswer]:
        """Return what an ended batch brought, by the ids it was handed in with; some may be missing."""
        ...

    def cancel_batch(self, external_id: str) -> None: ...


@runtime_checkable
class CanBatch(Protocol):
    """A provider that can hand in batches, or says why not."""

    @property
    def batching(self) -> Batching | str:
        """What batches are handed in with, or a sentence that says why there are none."""
        ...

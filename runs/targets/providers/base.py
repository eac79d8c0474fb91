"""Define what a provider gets and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals
from typing import Protocol, runtime_checkable

from evaluators.grading.costs import TrialCost
from evaluators.model import AgentResult, Json, Price
from evaluators.transcripts.endings import FailedRequest
from evaluators.transcripts.latest import LatestCalls
from runs.sandbox.recording.record import ToolRecord
from runs.targets.language_models.stub_chat import ToolSchema
from scenarios.spec import ScenarioSpec

PollCalls = Callable[[], LatestCalls]
"""Returns an agent's calls so far. Called from another thread."""


@dataclass(frozen=True)
class McpEndpoint:
    """How an agent reaches the MCP server under test: through the trial's proxy. Paths are those inside the sandbox."""

    name: str
    command: tuple[str, ...] = ()
    """Program and arguments of a server on standard input and output; empty for one with an address."""
    url: str = ""
    """A placeholder in arguments, variables and `config` that the connection replaces."""
    around: tuple[str, ...] = ()
    """Words before the agent's own that start its connection to a server with an address."""
    readable: tuple[Path, ...] = ()
    """What the agent needs to read for its connection."""

    @property
    def config(self) -> dict[str, Json]:
        """Return the server in the form that Claude Code and many other agents read."""
        command, *args = self.command or ("",)
        how: dict[str, Json] = {"command": command, "args": args}
        how = {"type": "http", "url": self.url} if self.url else how
        return {"mcpServers": {self.name: how}}


@dataclass(frozen=True)
class Invocation:
    """One task for an agent or a model."""

    prompt: str
    spec: ScenarioSpec
    """The scenario; its key is `{EVAL_ID}`."""
    workspace: Path
    """Directory of the trial; contains the fixture and the guidance."""
    scratch: Path
    """Directory outside the workspace for the provider's own files (events, output, logs)."""
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
    """Files uploaded with the scenario file, beside the workspace; None if there are none."""
    tools: tuple[ToolSchema, ...] = ()
    """Tools offered to a model; its first calls are the answer."""
    mcp: McpEndpoint | None = None
    """The MCP server under test; None without one."""
    record: ToolRecord | None = None
    """Gets the executions of the tool; None if it is not recorded."""
    in_workspace: bool = True
    """Whether gates check the workspace: then an agent that fails or times out is judged too. Otherwise a trial is
    a question and its answer, and a failed program has no answer."""
    cancelled: Callable[[], bool] = lambda: False
    """Polled a few times a second while a process runs; True stops it."""
    watch: Callable[[PollCalls], None] = lambda look: None
    """Registers a callback for the agent's calls so far; a provider that can't report them skips it."""


SIGNALS = (
    Signals.SIGHUP,
    Signals.SIGINT,
    Signals.SIGQUIT,
    Signals.SIGILL,
    Signals.SIGTRAP,
    Signals.SIGABRT,
    Signals.SIGBUS,
    Signals.SIGFPE,
    Signals.SIGKILL,
    Signals.SIGSEGV,
    Signals.SIGTERM,
    Signals.SIGSYS,
)
ENDED_BY_SIGNAL = {code: number for number in SIGNALS for code in (-number, 128 + number)}
"""The signals by the exit codes of programs that they ended, as Python and shells name them."""


NO_FAILURE = FailedRequest()


@dataclass(frozen=True)
class Recording(AgentResult):
    """A provider's unparsed result; `evaluators.transcripts` parses it."""

    raw: bytes = b""
    """The agent's complete output."""
    parser: str = "plain_text"
    """Name of the transcript reader for `raw`."""
    events: bytes | None = None
    """Structured events (JSON lines), preferred over `raw` if they contain a tool call or are a trace."""
    events_are_trace: bool = False
    """Whether `events` are a trace from the answer (AgentV), which counts even without a call."""
    cancelled: bool = False
    price: Price | None = None
    """What the provider made the cost with; None if the agent reported it or evalhub is to compute it."""
    cost: TrialCost | None = None
    """How the cost is known, once evalhub has looked."""
    price_source: str = ""
    """Where the cost comes from (`prices.price_source`), once evalhub has looked."""
    cost_limit: str = ""
    """What became of the scenario's cost limit, in a sentence, if the agent reached it."""
    seconds: float = field(default=0.0, kw_only=True)
    truncated: bool = False
    stderr: str = ""
    logs: Mapping[str, bytes] = field(default_factory=dict)
    """Other artifacts by name, as content, because a path may change before it is opened."""
    notes: tuple[str, ...] = ()
    version: str = ""
    """The agent program's version in this trial."""
    how_to_read: str = ""
    """What makes the program's output readable, in sentences, where no command is seen in it."""
    unread_stream: str = ""
    """Why the answer isn't known, in a sentence: what was printed is a stream of events that was not read."""
    program: str = ""
    """The program that ran, as the subject of a sentence; empty for an answer that no program gave."""
    was_stopped: bool = False
    """Whether evalhub ended the program: by a limit or a cancellation."""
    service_failure: FailedRequest = NO_FAILURE
    """The failed request that the agent was repeating when it was stopped, if its stream doesn't say so."""

    @property
    def was_cut(self) -> bool:
        """Whether the agent was ended: by its time limit, its cost limit or a cancellation."""
        return self.timed_out or self.cancelled or self.exit_code in ENDED_BY_SIGNAL


@dataclass(frozen=True)
class Availability:
    """Whether a target can run here, and what to do if not; `version` is the program's own.

    The sentence of a target that was tried and can run is a warning.
    """

    available: bool
    sentence: str = ""
    version: str = ""
    tried: bool = True
    """Whether anything was tried; otherwise only the first trial shows whether it works."""


class Provider(Protocol):
    """Runs one kind of target. Created from a resolved target; stateless between trials."""

    works_in_folder: bool
    """Whether it needs the trial's directories."""

    def check(self) -> Availability: ...

    def invoke(self, invocation: Invocation) -> Recording: ...


@dataclass(frozen=True)
class BatchProgress:
    """Progress of a batch."""

    ended: bool = False
    """Whether some results can be fetched."""
    failed: str = ""
    """Why the batch failed, in a sentence."""


@dataclass(frozen=True)
class BatchedAnswer:
    """A batch's result for one request: a recording, or a sentence on why it is missing."""

    recording: Recording | None = None
    error: str = ""


class Batching(Protocol):
    """Submits many tasks at once and fetches the results later. Every call may raise `ProviderError`."""

    def submit_batch(self, invocations: Mapping[str, Invocation]) -> str:
        """Submit tasks by id and return the batch's id."""
        ...

    def poll_batch(self, external_id: str) -> BatchProgress: ...

    def fetch_batch(self, external_id: str) -> Mapping[str, BatchedAnswer]:
        """Return an ended batch's results by task id; some may be missing."""
        ...

    def cancel_batch(self, external_id: str) -> None: ...


@runtime_checkable
class CanBatch(Protocol):
    """A provider that supports batches or explains why not."""

    @property
    def batching(self) -> Batching | str:
        """Return the batch client, or a sentence on why there is none."""
        ...

"""Run one session of a coding agent and record it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

from msgspec import structs

from evalhub.lib.numbers import format_money
from evaluators.grading.costs import compute
from evaluators.model import Price
from evaluators.transcripts import UnreadableTranscript, parse
from evaluators.transcripts.endings import FailedRequest
from evaluators.transcripts.latest import CallsSoFar
from runs.sandbox.process import OUTPUT_LIMIT, ProcessResult
from runs.sandbox.sandbox import Sandbox
from runs.targets.agents.agent_program import AgentLog, AgentProgram
from runs.targets.agents.session_end import LINGER_SECONDS, ClosingEvent, broken_by
from runs.targets.providers.base import Invocation, Recording
from runs.targets.providers.preread import preread_prompt
from runs.targets.providers.prices import known_price
from runs.targets.providers.recent_lines import PrintedLines, SplitLines

EVERY_SECONDS = 1.0

_LINGERED = (
    f"The agent's program still ran {LINGER_SECONDS:g} s after its last event and was ended: only what it had started "
    "in the background was left."
)


def run_session(
    program: AgentProgram,
    arguments: Sequence[str],
    invocation: Invocation,
    sandbox: Sandbox,
    *,
    parser: str,
    cwd: Path,
    env: Mapping[str, str],
    log: AgentLog,
    stdin: str = "",
    sessions: Callable[[Recording], Mapping[str, bytes]] = lambda recording: {},
    repeating: Callable[[Recording], FailedRequest] = lambda recording: FailedRequest(),
) -> Recording:
    """Run a session and return its stream for `parser`.

    `sessions` returns the files that the agent wrote about its session, by artifact; `repeating` the failed request
    that an agent without a word of it in its stream was repeating at the end.

    Raises `ProviderError` if the program can't start, or if only the answer counts and it is missing.
    """
    question = stdin.encode("utf-8", "replace")
    printed, calls = PrintedLines(), CallsSoFar(parser)
    version, limit = program.version(), _cost_limit(program, invocation, parser)
    invocation.watch(lambda: calls.read(printed.complete(), missed=printed.missed))
    closing = ClosingEvent(parser, invocation.record)
    result = program.run(
        arguments,
        replace(invocation, cancelled=lambda: invocation.cancelled() or limit.reached()),
        sandbox,
        cwd=cwd,
        env={**sandbox.own_home(), **env},
        stdin=question,
        log=log,
        sinks=[printed, closing, *([] if invocation.spec.cost.max_usd is None else [limit])],
        lingers=closing.lingers,
    )
    if result.lingered:
        # It had printed its closing event, and waited for what it left in the background.
        result = replace(result, exit_code=0)
    if limit.is_exceeded:
        result = replace(result, cancelled=invocation.cancelled())
    recording = Recording(
        raw=result.stdout,
        exit_code=result.exit_code,
        timed_out=result.timed_out,
        cancelled=result.cancelled,
        seconds=result.seconds,
        truncated=result.truncated,
        stderr=result.stderr.decode("utf-8", "replace"),
        notes=tuple(
            filter(
                None, (result.error, limit.note, _LINGERED if result.lingered else "", program.newer(version))
            )
        ),
        version=version,
        program=program.about,
        was_stopped=bool(result.error or limit.is_exceeded),
        cost_limit=limit.note,
        parser=parser,
        logs={"log": log.content},
    )
    recording = replace(recording, logs={**recording.logs, **sessions(recording)})
    if result.timed_out:
        recording = replace(recording, service_failure=repeating(recording))
    program.refuse_failure(result, broken_by(recording), invocation, log)
    _refuse_silence(program, parser, result, invocation, log)
    return recording


def _cost_limit(program: AgentProgram, invocation: Invocation, parser: str) -> CostWatch:
    limit = CostWatch(
        parser,
        math.inf if invocation.spec.cost.max_usd is None else invocation.spec.cost.max_usd,
        invocation.model or program.target.options.asked_model,
        lambda name: known_price(program.target.prices, name),
    )
    if invocation.spec.cost.max_usd is not None:
        limit.look_up_price()
    return limit


def prompt_of(invocation: Invocation, sandbox: Sandbox) -> str:
    """Return the question, preceded by the files to read by their paths in the sandbox."""
    return preread_prompt(
        invocation.prompt,
        guidelines=[sandbox.inside(path) for path in invocation.guideline_files],
        files=[sandbox.inside(path) for path in invocation.files],
    )


def _refuse_silence(
    program: AgentProgram, parser: str, result: ProcessResult, invocation: Invocation, log: AgentLog
) -> None:
    if invocation.in_workspace or result.cancelled:
        return
    try:
        answer = parse(parser, result.stdout).answer
    except UnreadableTranscript as error:
        raise program.failed(f"printed an unreadable stream ({error})", result, log) from error
    if not answer:
        raise program.failed("ended without an assistant message", result, log)


class CostWatch:
    """Reads what a stream reports so far: its cost, else its tokens by the model's price."""

    def __init__(
        self, parser: str, max_usd: float, model: str, price_of: Callable[[str], Price | None]
    ) -> None:
        self._parser, self._max_usd, self._model = parser, max_usd, model
        self._price_of = cache(price_of)
        self._split, self._lines = SplitLines(), bytearray()
        self._read, self._looked = 0, 0.0
        self.is_exceeded = False

    def look_up_price(self) -> None:
        """Look the model's price up before the session begins: litellm takes seconds to load."""
        self._price_of(self._model)

    def take(self, stream: Literal["stdout", "stderr"], chunk: bytes) -> None:
        """Keep the lines that report something, as many as are read in the end."""
        if stream == "stdout":
            for line in self._split.take(chunk):
                fits = len(self._lines) + len(line) < OUTPUT_LIMIT
                # Words of the lines that report a cost or tokens; other lines are not read.
                if fits and any(word in line for word in (b"cost", b"usage", b"tokens")):
                    self._lines += line + b"\n"

    def reached(self) -> bool:
        """Return whether the agent has cost more; reads at most once a second."""
        due = time.monotonic() - self._looked >= EVERY_SECONDS
        if not self.is_exceeded and due and len(self._lines) > self._read:
            self._looked, self._read = time.monotonic(), len(self._lines)
            cost = self._cost()
            self.is_exceeded = cost is not None and cost > self._max_usd
        return self.is_exceeded

    @property
    def note(self) -> str:
        """What happened, for the trial; empty if it did not cost more."""
        sentence = f"The agent was stopped: it cost more than {format_money(self._max_usd)} (cost.max_usd)."
        return sentence if self.is_exceeded else ""

    def _cost(self) -> float | None:
        try:
            transcript = parse(self._parser, bytes(self._lines))
        except UnreadableTranscript:
            return None
        if transcript.cost_usd is not None:
            return transcript.cost_usd
        if transcript.usage is None:
            return None
        # What isn't known yet can only add to the cost.
        so_far = structs.replace(transcript.usage, output_unknown=False)
        computed = compute(so_far, transcript.usage_by_model, self._model, self._price_of)
        return computed.usd if computed else None

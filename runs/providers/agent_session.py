"""Run one session of a coding agent and record it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evaluators.transcripts import UnreadableTranscript, parse
from evaluators.transcripts.latest import CallsSoFar
from runs.containment.process import ProcessResult
from runs.providers.agent_log import AgentLog
from runs.providers.agent_program import AgentProgram
from runs.providers.base import Invocation, Recording
from runs.providers.cost_limit import CostLimit
from runs.providers.preread import preread_prompt
from runs.providers.prices import known_price
from runs.providers.recent_lines import PrintedLines

if TYPE_CHECKING:  # runs.containment.sandbox imports this package
    from runs.containment.sandbox import Sandbox


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
) -> Recording:
    """Run a session and return its stream for `parser`.

    Raises `ProviderError` if the program can't start, or if only the answer counts and it is missing.
    """
    given = stdin.encode("utf-8", "replace")
    printed, calls = PrintedLines(), CallsSoFar(parser)
    version = program.version()
    model = invocation.model or program.target.options.asked_model
    price = None if invocation.max_usd is None else known_price(program.target.prices, model)
    limit = CostLimit(parser, math.inf if invocation.max_usd is None else invocation.max_usd, price)
    invocation.watch(lambda: calls.read(printed.complete(), missed=printed.missed))
    result = program.run(
        arguments,
        replace(invocation, cancelled=lambda: invocation.cancelled() or limit.reached()),
        sandbox,
        cwd=cwd,
        env={**sandbox.own_home(), **env},
        stdin=given,
        log=log,
        sinks=[printed] if invocation.max_usd is None else [printed, limit],
    )
    if limit.is_exceeded:
        result = replace(result, cancelled=invocation.cancelled())
    program.refuse_failure(result, invocation, log)
    _refuse_silence(program, parser, result, invocation, log)
    return Recording(
        raw=result.stdout,
        parser=parser,
        exit_code=result.exit_code,
        timed_out=result.timed_out,
        cancelled=result.cancelled,
        seconds=result.seconds,
        truncated=result.truncated,
        stderr=result.stderr.decode("utf-8", "replace"),
        logs={"log": log.content},
        notes=tuple(filter(None, (result.error, limit.note, program.newer(version)))),
        version=version,
    )


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

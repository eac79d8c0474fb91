"""What `copilot --output-format json` prints, and keeps as a session: events with `data`, one JSON object a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from evaluators.json_values import int_or_none
from evaluators.model import Event, Json, NotRun, Transcript, Usage, total_usage
from evaluators.transcripts.stream import (
    Object,
    check_known,
    count_or_zero,
    make_transcript,
    make_unknown_event,
    mapping_or_empty,
    parse_objects,
    text_or_none,
)
from evaluators.transcripts.traces import as_timestamp, shell_command

_PASSING = ("session.", "model.", "assistant.", "tool.", "system.", "permission.", "hook.", "subagent.")
"""Kinds of events that say nothing that is read, by their beginning; a call is only in those that are read."""
_EXITED = re.compile(
    r"(?:\A|\n)<(?:exited|shellId: [\w.-]{1,100} completed) with exit code (-?\d{1,9})>\s*\Z"
)
"""How releases before `shellExecution.exitCode` state the end of a command."""


def parse(raw: bytes) -> Transcript:
    """Return the stream of a Copilot CLI session. Raises `UnreadableTranscript` where it holds no event of one.

    The stream has no tokens; the session's file has them.
    """
    lines, problems = parse_objects(raw, "Copilot CLI")
    silent = {kind for line in lines if _is_own(kind := text_or_none(line.get("type")) or "", line)}
    events = check_known(read_events(lines), lines, "Copilot CLI", silent)
    by_model = usage_by_model(lines)
    return make_transcript(
        events, usage=total_usage(by_model.values()), usage_by_model=by_model, problems=problems
    )


def read_events(lines: Iterable[Object]) -> Iterator[Event]:
    """Yield what a session's lines say, of its stream or its file."""
    shells = set[str | None]()
    for line in lines:
        kind, data = text_or_none(line.get("type")) or "", mapping_or_empty(line.get("data"))
        time = as_timestamp(line.get("timestamp"))
        if kind in ("user.message", "assistant.message"):
            if text := text_or_none(data.get("content")):
                yield Event("message", role=kind.partition(".")[0], text=text, timestamp=time)
        elif kind == "tool.execution_start" and "mcpToolName" in data:
            yield _mcp_call(data, time)
        elif kind == "tool.execution_start":
            id, name = text_or_none(data.get("toolCallId")), text_or_none(data.get("toolName"))
            arguments = data.get("arguments")
            command = shell_command(name, arguments)
            shells.update({id} if command is not None else ())
            yield Event("tool_call", id, name, command, arguments, timestamp=time)
        elif kind == "tool.execution_complete":
            yield _result(data, time, is_shell=text_or_none(data.get("toolCallId")) in shells)
        elif kind == "session.error":
            yield Event("error", text=text_or_none(data.get("message")), timestamp=time)
        elif not _is_own(kind, line):
            yield make_unknown_event(line, kind)


def _mcp_call(data: Object, time: str | None) -> Event:
    """Return the call of an MCP server's tool by its own name; Copilot CLI changes and cuts the one that it shows."""
    server = text_or_none(data.get("mcpServerName"))
    about: dict[str, Json] = {"server": server} if server else {}
    return Event(
        "tool_call",
        text_or_none(data.get("toolCallId")),
        text_or_none(data.get("mcpToolName")),
        input=data.get("arguments"),
        timestamp=time,
        metadata=about,
    )


def usage_by_model(lines: Iterable[Object]) -> dict[str, Usage]:
    """Return a session's tokens by model, as its last shutdown sums them up; empty without one."""
    ends = [mapping_or_empty(line.get("data")) for line in lines if line.get("type") == "session.shutdown"]
    usages: dict[str, Usage] = {}
    for end in ends:
        metrics = end.get("modelMetrics") or mapping_or_empty(end.get("accountingSnapshot")).get(
            "modelMetrics"
        )
        for model, metric in mapping_or_empty(metrics).items():
            tokens = mapping_or_empty(mapping_or_empty(metric).get("usage"))
            usages[model] = Usage(
                count_or_zero(tokens.get("inputTokens")),
                count_or_zero(tokens.get("outputTokens")),
                cache_read=count_or_zero(tokens.get("cacheReadTokens")),
                cache_write=count_or_zero(tokens.get("cacheWriteTokens")),
                reasoning=count_or_zero(tokens.get("reasoningTokens")),
            )
    return usages


def _is_own(kind: str, line: Object) -> bool:
    is_event = kind.startswith(_PASSING) or kind == "abort"
    return (kind == "result" and "sessionId" in line) or (is_event and "data" in line)


def _result(data: Object, time: str | None, *, is_shell: bool) -> Event:
    """Return a call's result: `success` says that it ran, the exit code how a command ended."""
    error, result = mapping_or_empty(data.get("error")), mapping_or_empty(data.get("result"))
    shell = data.get("shellExecution")
    code = mapping_or_empty(shell).get("exitCode")
    ran = data.get("success") is True
    not_run = "" if ran else _not_run(error)
    telemetry = mapping_or_empty(mapping_or_empty(data.get("toolTelemetry")).get("properties"))
    is_shell = is_shell or shell is not None or "executionMode" in telemetry
    known = not not_run and not (is_shell and ran)
    content = result.get("content")
    if is_shell and ran and int_or_none(code) is None:
        # The exit code that the program writes below a command's output; the command itself may print the
        # words.
        # Characters at the end of a result that hold its statement.
        match = _EXITED.search(content[-200:]) if isinstance(content, str) else None
        code = int(match[1]) if match else None
    return Event(
        "tool_result",
        text_or_none(data.get("toolCallId")),
        output=content or error.get("message"),
        exit_code=None if not_run else int_or_none(code),
        success=ran if known else None,
        timestamp=time,
        not_run=not_run,
    )


def _not_run(error: Object) -> NotRun:
    """Return why a call never ran. Arguments that don't fit are recognised by the schema's sentence alone."""
    code, message = text_or_none(error.get("code")) or "", text_or_none(error.get("message")) or ""
    if code == "rejected":
        return "rejected"
    if code in ("denied", "rejected") or message.startswith("Permission to run this tool was denied"):
        return "denied"
    return "invalid" if message.endswith(": Required") and message.startswith('"') else ""

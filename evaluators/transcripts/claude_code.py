"""What `claude -p --output-format stream-json --verbose` prints: messages with content blocks, one a line.

Calls that never ran are found by the words that agents' programs put in place of a result. How a background
command ended is known from the stream, a notification, or a later read of its output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct, structs

from evaluators.model import Event, Json, NotRun, Transcript, Usage, plausible_cost, total_usage
from evaluators.transcripts.stream import (
    Object,
    check_known,
    count_or_zero,
    make_transcript,
    make_unknown_event,
    mapping_or_empty,
    newer_version,
    parse_objects,
    text_of_message,
    text_or_none,
)
from evaluators.transcripts.traces import as_timestamp, shell_command

Refusals = tuple[tuple[NotRun, re.Pattern[str]], ...]
"""What each kind of refusal begins with."""


def _patterns(**sources: str) -> Refusals:
    kinds: tuple[NotRun, ...] = ("rejected", "denied", "cancelled", "invalid")
    return tuple((kind, re.compile(sources[kind])) for kind in kinds if kind in sources)


CLAUDE_CODE = _patterns(
    rejected=r"The user doesn't want to (?:proceed with this tool use|take this action right now)"
    r"|Permission for this tool use was denied\. The tool use was rejected"
    r"|User rejected tool use",
    denied=r"Permission to use \S+(?: with command [\s\S]{0,4000}?)? (?:has been )?denied\b"
    r"|Permission for this (?:action|command|tool use) (?:has been|was) denied\b"
    r"|Permission denied by (?:\w+ )?hook"
    r"|Claude requested permissions to [\s\S]{0,4000}?, but you haven't granted it yet"
    r"|This command requires approval\s*$"
    r"|\w+ did not run\. It needs the user's approval"
    r"|PreToolUse:\S+ hook (?:error|blocking error)\b|\w+ operation blocked by hook\b"
    r"|Execution stopped by PreToolUse hook|<tool_use_error>Blocked: ",
    cancelled=r"<tool_use_error>(?:Cancelled: |Sibling tool call errored)|Sibling tool call errored"
    r"|\[Tool call (?:skipped|not completed): ",
    # This tag replaces a result before the tool runs, except for "Error calling tool".
    invalid=r"<tool_use_error>(?!Error calling tool|(?:Error: )?No such tool available: mcp__)"
    r"|InputValidationError: ",
)
CLAUDE_CODE_UNKNOWN = re.compile(
    r"\[Tool call (?:interrupted|did not complete|result not in this copy): "
    r"|\[Request interrupted by user for tool use\]|A safety monitor blocked this turn"
)
"""What Claude Code writes for a call that may have run and whose result it never saw."""
CLAUDE_CODE_KINDS: Mapping[str, NotRun] = {
    "user-rejected": "rejected",
    "permission-rule": "denied",
    "automode-blocked": "denied",
    "automode-unavailable": "denied",
    "automode-parsing-error": "denied",
    "cancelled": "cancelled",
}
"""Why a call did not run, as Claude Code names it; `interrupted`, its other kind, may have run."""
INTERRUPTED = "interrupted"
CODEX = _patterns(
    rejected=r"(?:exec command |patch )?rejected by user\b"
    r"|(?:exec_command|shell_command|shell|command) failed[\s\S]{0,4000}?Rejected\(\"rejected by user",
    denied=r"`[\s\S]{0,4000}?` rejected: |patch rejected: |write_stdin rejected: "
    r"|exec command rejected\b|[\w ]+; rejected by user approval settings"
    r"|approval policy is \w+; reject command"
    r"|(?:exec_command|shell_command|shell|command) failed[\s\S]{0,4000}?Rejected\(",
    invalid=r"failed to parse function arguments|unsupported (?:custom tool )?call: ",
)
OPENCODE = _patterns(
    rejected=r"The user rejected permission to use this specific tool call",
    denied=r"The user has specified a rule which prevents you from using this specific tool call",
    cancelled=r"Tool execution (?:was )?(?:aborted|interrupted)$",
    invalid=r"The \S+ tool was called with invalid arguments"
    r"|The arguments provided to the tool are invalid",
)


def find_refusal(text: str, known: Refusals) -> NotRun:
    """Return why a call did not run, by the beginning of what replaces its result; empty if it ran."""
    begins = text.lstrip()
    return next((kind for kind, pattern in known if pattern.match(begins)), "")


_STARTED = re.compile(
    r"Command running in background with ID: (?P<a>[\w-]+)"
    r"|Command was manually backgrounded by user with ID: (?P<b>[\w-]+)"
    r"|Command [^\n]{0,200}?moved to the background \(ID: (?P<c>[\w-]+)\)"
)
TASK_READS = frozenset(("BashOutput", "TaskOutput", "AgentOutputTool", "BashOutputTool"))
"""Calls that read what a background command printed and how it ended."""
_CODE = re.compile(r"(?:\(exit code|with exit code) (-?\d{1,5})\b")
_READ_STATUS = re.compile(r"<status>(\w+)</status>")
_READ_CODE = re.compile(r"<exit_code>(-?\d{1,5})</exit_code>")
_READ_OUTPUT = re.compile(r"<(?:output|stdout)>\n?([\s\S]*?)\n?</(?:output|stdout)>")
_NOTICE = re.compile(r"<task-notification>([\s\S]*?)</task-notification>")
_TASK = re.compile(r"<task-id>([^<]*)</task-id>")
_SUMMARY = re.compile(r"<summary>([\s\S]*?)</summary>")


class TaskEnd(Struct, frozen=True):
    """The end of a background command."""

    exit_code: int | None = None
    success: bool | None = None
    """None for one that was stopped: it neither succeeded nor failed."""
    output: str = ""


class TaskEnds:
    """Collects the ends of background commands by their id."""

    def __init__(self) -> None:
        self.found: dict[str, TaskEnd] = {}

    def add_status(self, line: Object) -> None:
        """Take a system line of the live stream."""
        task = text_or_none(line.get("task_id"))
        if task is None:
            return
        if line.get("subtype") == "task_notification":
            self._add(task, text_or_none(line.get("status")), text_or_none(line.get("summary")) or "")
        elif line.get("subtype") == "task_updated":
            patch = mapping_or_empty(line.get("patch"))
            self._add(task, text_or_none(patch.get("status")), text_or_none(patch.get("error")) or "")

    def add_notices(self, text: str) -> None:
        """Take the notifications in a message that Claude Code writes for the model."""
        if "<task-notification>" not in text:
            return
        for notice in _NOTICE.findall(text):
            task, status, summary = (pattern.search(notice) for pattern in (_TASK, _READ_STATUS, _SUMMARY))
            if task and status:
                self._add(task[1].strip(), status[1], summary[1] if summary else "")

    def add_read(self, task: str, output: str) -> None:
        """Take what a tool returned that reads a background command's output."""
        before, _, _ = output.partition("<output>")
        status, code = _READ_STATUS.search(before), _READ_CODE.search(before)
        printed = _READ_OUTPUT.search(output)
        if status:
            said = f"(exit code {code[1]})" if code else ""
            self._add(task, status[1], said, printed[1] if printed else "")

    def _add(self, task: str, status: str | None, said: str, output: str = "") -> None:
        before = self.found.get(task, TaskEnd())
        code = _CODE.search(said)
        known = int(code[1]) if code else before.exit_code
        output = output or before.output
        if status in ("completed", "failed"):
            success = known == 0 if known is not None else status == "completed"
            self.found[task] = TaskEnd(known, success, output)
        elif status in ("killed", "stopped"):
            self.found[task] = TaskEnd(output=output)


def task_of(output: Json) -> str:
    """Return the id of a command that a result says is in the background; empty if it is not."""
    match = _STARTED.match(output.lstrip()) if isinstance(output, str) else None
    return next(filter(None, match.groups()), "") if match else ""


def with_task_ends(events: Iterable[Event], ends: TaskEnds) -> list[Event]:
    """Return the events, with the results of background commands as they ended; unknown if nothing tells."""
    events = list(events)
    reads: dict[str, str] = {}
    for event in events:
        if event.type == "tool_call" and event.id and event.name in TASK_READS:
            arguments = mapping_or_empty(event.input)
            task = next(
                (
                    text_or_none(arguments.get(key))
                    for key in ("task_id", "bash_id", "shell_id")
                    if key in arguments
                ),
                "",
            )
            reads[event.id] = task or ""
        elif event.type == "tool_result" and isinstance(event.output, str) and reads.get(event.id or ""):
            ends.add_read(reads[event.id or ""], event.output)
        elif event.type == "message" and event.role in ("user", "agent") and event.text:
            ends.add_notices(event.text)
    return [_end_event(event, ends) for event in events]


def _end_event(event: Event, ends: TaskEnds) -> Event:
    if event.type != "tool_result" or event.success is not True or not (task := task_of(event.output)):
        return event
    end = ends.found.get(task, TaskEnd())
    output = f"{event.output}\n{end.output}" if end.output else event.output
    return structs.replace(event, exit_code=end.exit_code, success=end.success, output=output)


NEWEST_MAJOR = 2
"""The last major version whose stream is known."""
_PASSING = frozenset(("system", "stream_event", "rate_limit_event"))
_SILENT = _PASSING | {"assistant", "user", "result"}
_EXIT_CODE = re.compile(r"Exit code (\d{1,5})\b")


def parse(raw: bytes) -> Transcript:
    """Return the stream of a Claude Code session. Raises `UnreadableTranscript` where it holds no event of one.

    Usage is what the session's result says, with that of sub-agents; of a session that was ended early, the sum of its
    messages' input: their output is what the service knew before it wrote them.
    """
    lines, problems = parse_objects(raw, "Claude Code")
    results = [line for line in reversed(lines) if line.get("type") == "result"]
    result = results[0] if results else {}
    # A session that wakes up for a command in the background has a result before.
    final = next((line for line in results if not line.get("is_error")), result)
    by_model = _models_usage(result, lines)
    is_qwen = any("qwen_code_version" in line for line in lines)
    usage = total_usage(by_model.values())
    if usage is None and "usage" in result:
        usage = read_claude_usage(mapping_or_empty(result["usage"]))
    elif usage is None:
        by_model = _messages_usage(lines)
        if not is_qwen:
            by_model = {
                name: structs.replace(used, output=0, output_unknown=True) for name, used in by_model.items()
            }
        usage = total_usage(by_model.values())
    turns, ends = Turns(), TaskEnds()
    for line in lines:
        kind = text_or_none(line.get("type")) or ""
        if kind == "system":
            ends.add_status(line)
        turns.add(line, kind, _events(line, kind))
    events = _without_denied(with_task_ends(turns.events, ends), result)
    if is_qwen:
        events = [_carried_out(event) for event in events]
    return make_transcript(
        check_known(events, lines, "Claude Code", _SILENT),
        answer=text_or_none(final.get("result")) or "",
        usage=usage,
        usage_by_model=by_model,
        cost_usd=plausible_cost(result.get("total_cost_usd")),
        problems=(*problems, *filter(None, [_newer(lines)])),
    )


class Turns:
    """Events of messages; the first event of an assistant's message has the message's usage."""

    def __init__(self, read_usage: Callable[[Object], Usage] | None = None) -> None:
        self.events: list[Event] = []
        self._read_usage = read_usage or read_claude_usage
        self._first: dict[str, int] = {}
        """The index of each message's first event: a message is repeated for each of its blocks."""

    def add(self, line: Object, role: str, events: Iterable[Event]) -> None:
        """Add the events of a message's line."""
        start, message = len(self.events), mapping_or_empty(line.get("message"))
        self.events += events
        if role == "assistant" and "usage" in message and len(self.events) > start:
            at = self._first.setdefault(str(message.get("id")), start)
            self.events[at] = structs.replace(
                self.events[at], usage=self._read_usage(mapping_or_empty(message["usage"]))
            )


def _without_denied(events: list[Event], result: Object) -> list[Event]:
    """Mark the calls that the session's result lists as not permitted, unless they have another result."""
    listed = result.get("permission_denials")
    ids = (
        {text_or_none(mapping_or_empty(each).get("tool_use_id")) for each in listed}
        if isinstance(listed, list)
        else set()
    )
    answered = {event.id for event in events if event.type == "tool_result"}
    return [_mark_denied(event, answered) if event.id and event.id in ids else event for event in events]


def _mark_denied(event: Event, answered: set[str | None]) -> Event:
    refused = event.type == "tool_result" and event.success is False and event.exit_code is None
    unanswered = event.type == "tool_call" and event.id not in answered
    return structs.replace(event, not_run="denied", success=None) if refused or unanswered else event


def _carried_out(event: Event) -> Event:
    """Return a result of Qwen Code, in whose stream of this shape no error says only that the call was carried out."""
    return structs.replace(event, success=None) if event.type == "tool_result" and event.success else event


def _newer(lines: list[Object]) -> str:
    """Return a note if the session's version is newer than the known ones."""
    version = next((found for line in lines if (found := text_or_none(line.get("claude_code_version")))), "")
    return newer_version("Claude Code", version, NEWEST_MAJOR)


def _events(line: Object, kind: str) -> Iterator[Event]:
    if kind in ("assistant", "user"):
        yield from (_mark_decided(event, line) for event in message_events(line, kind, _agent(line)))
    elif kind == "result":
        if line.get("is_error"):
            yield Event("error", text=text_or_none(line.get("result")) or text_or_none(line.get("subtype")))
    elif kind not in _PASSING:
        yield make_unknown_event(line, kind)


def _mark_decided(event: Event, line: Object) -> Event:
    """Mark a result by what the line itself says of its call."""
    about = line.get("tool_result_meta")
    results = (mapping_or_empty(each) for each in (about if isinstance(about, list) else ()))
    result = next((each for each in results if event.id and each.get("id") == event.id), {})
    said = text_or_none(mapping_or_empty(result.get("permission_decision")).get("source"))
    return by_kind(event, result.get("non_execution_kind"), by_person=said != "config")


def by_kind(event: Event, kind: Json, *, by_person: bool = True) -> Event:
    """Mark a failed result by the kind that Claude Code gives to calls that did not run; words of it count first.

    A call that needs a permission counts as denied where no person was asked.
    """
    if event.type != "tool_result" or event.not_run or event.success is not False:
        return event
    if kind == INTERRUPTED:
        return structs.replace(event, success=None, exit_code=None)
    why = CLAUDE_CODE_KINDS.get(kind, "") if isinstance(kind, str) else ""
    if why == "rejected" and not by_person:
        why = "denied"
    return structs.replace(event, success=None, exit_code=None, not_run=why) if why else event


def message_events(line: Object, role: str, agent: str = "") -> Iterator[Event]:
    """Yield the content of a message as events, with the id of its sub-agent; session files have the same messages."""
    content = mapping_or_empty(line.get("message")).get("content")
    time = as_timestamp(line.get("timestamp"))
    about: dict[str, Json] = {"agent": agent} if agent else {}
    # What the main agent asked isn't a message of a person.
    role = "agent" if agent and role == "user" else role
    if isinstance(content, str):
        yield Event("message", role=role, text=content, timestamp=time, metadata=about)
    for block in content if isinstance(content, list) else ():
        event = _block(mapping_or_empty(block), role, time)
        yield structs.replace(event, metadata={**event.metadata, **about}) if about else event


def _agent(line: Object) -> str:
    """Return the id of the sub-agent whose message a line of the stream is; empty for the main agent's."""
    asked_by = text_or_none(line.get("parent_tool_use_id"))
    return (text_or_none(line.get("agent_id")) or asked_by) if asked_by else ""


def _block(block: Object, role: str, time: str | None) -> Event:
    kind = text_or_none(block.get("type")) or ""
    if kind == "text":
        return Event("message", role=role, text=text_or_none(block.get("text")), timestamp=time)
    if kind in ("image", "document") and role != "assistant":
        return Event("message", role=role, text=f"[{kind}]", timestamp=time)
    if kind in ("thinking", "redacted_thinking"):
        return Event("model_step", name=kind, text=text_or_none(block.get("thinking")), timestamp=time)
    if kind == "tool_use":
        name, arguments = text_or_none(block.get("name")), block.get("input")
        id = text_or_none(block.get("id"))
        return Event("tool_call", id, name, shell_command(name, arguments), arguments, timestamp=time)
    return _result(block, time) if kind == "tool_result" else make_unknown_event(block, kind)


def _result(block: Object, time: str | None) -> Event:
    """Return a shell's exit code, which appears only in the text of a failed result."""
    output = text_of_message(block.get("content"))
    failed = block.get("is_error") is True
    code = _EXIT_CODE.match(output) if failed else None
    not_run = find_refusal(output, CLAUDE_CODE) if failed else ""
    is_unknown = bool(not_run) or "<error>Command was aborted before completion</error>" in output[-200:]
    is_unknown |= failed and CLAUDE_CODE_UNKNOWN.match(output.lstrip()) is not None
    return Event(
        "tool_result",
        text_or_none(block.get("tool_use_id")),
        output=output,
        exit_code=int(code[1]) if code else None,
        success=None if is_unknown and not code else not failed,
        timestamp=time,
        not_run=not_run,
    )


def read_claude_usage(tokens: Object) -> Usage:
    """Return the usage of a message or a session: Anthropic's `input_tokens` are those beside the cache."""
    lifetimes = mapping_or_empty(tokens.get("cache_creation"))
    for_hour = count_or_zero(lifetimes.get("ephemeral_1h_input_tokens"))
    created = tokens.get("cache_creation_input_tokens")
    if created is None:
        created = count_or_zero(lifetimes.get("ephemeral_5m_input_tokens")) + for_hour
    return _usage(
        count_or_zero(tokens.get("input_tokens")),
        read=count_or_zero(tokens.get("cache_read_input_tokens")),
        created=count_or_zero(created),
        for_hour=for_hour,
        output=count_or_zero(tokens.get("output_tokens")),
    )


def _usage(fresh: int, *, read: int, created: int, for_hour: int, output: int) -> Usage:
    for_hour = min(created, for_hour)
    return Usage(
        input=fresh + read + created,
        output=output,
        cache_read=read,
        cache_write=created - for_hour,
        cache_write_1h=for_hour,
    )


def _models_usage(result: Object, lines: list[Object]) -> dict[str, Usage]:
    """Return the usage by model that the result has, which includes that of sub-agents; empty if it has none.

    Only messages say how long their writes to the cache last.
    """
    models = {
        name: mapping_or_empty(used) for name, used in mapping_or_empty(result.get("modelUsage")).items()
    }
    seen = _messages_usage(lines) if models else {}
    usages = {
        name: _usage(
            count_or_zero(used.get("inputTokens")),
            read=count_or_zero(used.get("cacheReadInputTokens")),
            created=count_or_zero(used.get("cacheCreationInputTokens")),
            for_hour=seen[name].cache_write_1h if name in seen else 0,
            output=count_or_zero(used.get("outputTokens")),
        )
        for name, used in models.items()
    }
    return {name: used for name, used in usages.items() if used.input or used.output}


def _messages_usage(lines: list[Object]) -> dict[str, Usage]:
    """Add up the messages' usage by model; a message is repeated for each of its blocks."""
    messages = {
        str(message.get("id")): message
        for message in (
            mapping_or_empty(line.get("message")) for line in lines if line.get("type") == "assistant"
        )
    }
    return by_model(
        (text_or_none(message.get("model")) or "", read_claude_usage(mapping_or_empty(message.get("usage"))))
        for message in messages.values()
    )


def by_model(messages: Iterable[tuple[str, Usage]]) -> dict[str, Usage]:
    """Add up the usages of messages by their model."""
    usages: dict[str, Usage] = {}
    for name, used in messages:
        if used.input or used.output:
            usages[name] = total_usage([usages.get(name), used]) or used
    return usages

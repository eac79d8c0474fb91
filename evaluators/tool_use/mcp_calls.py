"""Find the calls of an MCP server in a transcript and say why they failed.

The naming table: Codex reports server and tool apart (`mcp_tool_call`), Claude Code and Qwen Code call
`mcp__SERVER__TOOL`, Gemini CLI `mcp_SERVER_TOOL`, opencode `SERVER_TOOL` and Copilot CLI `SERVER-TOOL`; some have names
of their own for reading resources.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec
from msgspec import Struct

from evaluators.model import Event, FoundCommand, Json, Source, Transcript
from evaluators.tool_use.attempts import call_message
from evaluators.tool_use.calls import MCP_MARK, Call, pair_calls
from evaluators.tool_use.mcp_arguments import ArgumentProblem, ArgumentProblemKind, argument_problems
from evaluators.tool_use.mcp_record import McpSurface, RecordedRequest, join_surfaces
from evaluators.tool_use.tool import McpServer
from evaluators.tool_use.tool_commands import HELP, FoundCommands, number_commands

_SHOWN = 3


def output_problem(schema: Mapping[str, Json], result: Json) -> str:
    """Return how a result breaks the schema (MCP, Output Schema), in a sentence; empty if it fits.

    A result that was too long to be recorded is not checked.
    """
    if not isinstance(result, Mapping) or result.get("truncated") or not result:
        return ""
    if "structuredContent" not in result:
        return "The server broke its outputSchema: the result has no structuredContent."
    problems = argument_problems(schema, result["structuredContent"])
    if not problems:
        return ""
    return f"The server broke its outputSchema: {', '.join(map(_words, problems[:_SHOWN]))}."


def _words(problem: ArgumentProblem) -> str:
    name = f"`{problem.name}`" if problem.name else "structuredContent"
    if problem.kind == ArgumentProblemKind.MISSING:
        return f"{name} is missing"
    if problem.kind == ArgumentProblemKind.UNKNOWN:
        return f"{name} is not allowed"
    return f"{name} is not {problem.expected}"


_HELP_NAMES = {
    "list_mcp_resources": "resources/list",
    "list_mcp_resource_templates": "resources/templates/list",
    "read_mcp_resource": "resources/read",
    "ListMcpResourcesTool": "resources/list",
    "ReadMcpResourceTool": "resources/read",
    "ReadMcpResourceDirTool": "resources/read",
    "ToolSearch": "tools/list",
    "tool_search": "tools/list",
    "WaitForMcpServers": "tools/list",
}
"""Tools by which agents read a server's resources or search its tools, with the method that they stand for."""
_READS = frozenset(("resources/read", "prompts/get"))
"""Methods that an agent doesn't use by itself when it connects."""
_HELP_METHODS = _READS | frozenset(_HELP_NAMES.values())
_BROKEN_OUTPUT = re.compile(r"(?i)structured content|output schema")
"""How the SDKs of agents say that a result breaks the tool's `outputSchema`."""

_NOT_FOUND = re.compile(r'Tool "[^"\n]*" not found')
"""How Gemini CLI and Qwen Code refuse a call of a tool that doesn't exist."""


class McpFailure(StrEnum):
    """Why a call failed."""

    UNKNOWN_TOOL = "unknown_tool"
    """The server has no such tool."""
    ARGUMENTS = "arguments"
    """The arguments don't fit the tool's `inputSchema`."""
    IS_ERROR = "is_error"
    """The tool itself reported an error (`isError`)."""
    PROTOCOL = "protocol"
    """The server answered with a JSON-RPC error, not at all, or with a result that breaks the tool's `outputSchema`."""

    @property
    def label(self) -> str:
        return {
            "unknown_tool": "unknown tool",
            "arguments": "arguments don't fit the schema",
            "is_error": "the tool reported an error",
            "protocol": "protocol error",
        }[self.value]


class McpCall(Struct, frozen=True, omit_defaults=True):
    """A call of the server under test, as `mark_calls` stores it with its event."""

    tool: str
    """The tool, or the method of a call for help."""
    server: str = ""
    """The server, where the run has more than one; empty otherwise."""
    arguments: Json = None
    help: bool = False
    failure: str = ""
    exit_code: int | None = None
    """0 or 1; None if the result is unknown."""
    message: str = ""
    """What is wrong, where evalhub itself found it."""
    unrecorded: bool = False
    """Whether the agent's events state a success that the proxy didn't see; its end is unknown then."""

    @property
    def line(self) -> str:
        """Return the call as a command line."""
        return call_line(self.subcommand, self.arguments)

    @property
    def subcommand(self) -> str:
        """Return the tool, as `server/tool` where the run has more than one server."""
        return f"{self.server}/{self.tool}" if self.server else self.tool


def call_line(tool: str, arguments: Json) -> str:
    """Return a call as a command line: the tool and its arguments as JSON."""
    text = msgspec.json.encode(arguments, order="deterministic").decode() if arguments else ""
    return f"{tool} {text}".strip()


def arguments_of(line: str) -> dict[str, Json]:
    """Return the arguments in a line of `call_line`; empty for any other line."""
    try:
        arguments = msgspec.json.decode(line.partition(" ")[2] or "{}")
    except msgspec.DecodeError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def find_mcp_calls(paired: Sequence[Call], server: McpServer) -> FoundCommands:
    """Return the server's calls as commands: the tool is the subcommand, its arguments are the flags."""
    not_run = sum(never_ran(call) and _call_by_name(call.event, server) is not None for call in paired)
    marks = [call.event.metadata.get(MCP_MARK) for call in paired]
    unrecorded = sum(isinstance(mark, Mapping) and bool(mark.get("unrecorded")) for mark in marks)
    return FoundCommands(number_commands(_commands(paired, server)), not_run, unrecorded=unrecorded)


def never_ran(call: Call) -> bool:
    """Return whether a call was rejected, denied or cancelled; one with wrong arguments is the model's error."""
    return call.not_run not in ("", "invalid")


def _commands(paired: Sequence[Call], server: McpServer) -> Iterator[tuple[FoundCommand, int | None]]:
    for call in paired:
        if never_ran(call):
            continue
        stored = call.event.metadata.get(MCP_MARK)
        mcp_call = msgspec.convert(stored, McpCall) if stored else _judge_call(call, server, None, None)
        if mcp_call is None:
            continue
        failed = mcp_call.exit_code not in (None, 0)
        subcommand = HELP if mcp_call.help else mcp_call.subcommand
        yield (
            FoundCommand(
                mcp_call.line,
                subcommand,
                mcp_call.exit_code,
                failed=failed,
                help=mcp_call.help,
                failure=mcp_call.failure,
            ),
            call.index,
        )


def mark_calls(
    transcript: Transcript,
    server: McpServer,
    surface: McpSurface | None,
    record: Sequence[RecordedRequest] | None = None,
    *,
    has_others: bool = False,
) -> Transcript:
    """Return the transcript with every call of the server marked, for `mcp_commands`.

    The proxy's record is the authority: it decides how a call ended, and calls that the agent's events lack are added
    at their end. None means that no proxy recorded anything. A call that never left the agent takes no record.
    `surface` is what the server listed before the run, for agents that were shown no list of their own. `has_others` is
    whether the run has other servers, so that calls name theirs.
    """
    shown_as = server.name if has_others else ""
    paired = pair_calls(transcript.events)
    surface = join_surfaces(request.surface for request in record or () if request.surface) or surface
    events, pending = list(transcript.events), _Pending(record or (), paired)
    for call in paired:
        named = _call_by_name(call.event, server)
        if named is None or never_ran(call):
            continue
        recorded = None if _is_refused(call) else pending.take(named, call.event.id or "")
        reached = None if record is None else recorded or False
        if (mcp_call := _judge_call(call, server, surface, reached)) is None:
            continue
        mcp_call = msgspec.structs.replace(mcp_call, server=shown_as)
        metadata = {**call.event.metadata, MCP_MARK: msgspec.to_builtins(mcp_call)}
        events[call.index] = msgspec.structs.replace(call.event, metadata=metadata)
    for number, request in enumerate(pending.left.values()):
        if request.tool not in _HELP_METHODS or request.tool in _READS:
            events += _add_events(f"mcp-{number}", request, server, surface, shown_as)
    plain = transcript.source in ("none", "transcript")
    # The record knows of every call, also that there was none.
    source: Source = "events" if record is not None and plain else transcript.source
    return msgspec.structs.replace(transcript, events=tuple(events), source=source)


def _call_by_name(event: Event, server: McpServer) -> McpCall | None:
    """Return the call in an event, by the naming table; None if it isn't the server's."""
    name, arguments = event.name or "", event.input if isinstance(event.input, Mapping) else {}
    if name == "invalid" and isinstance(arguments.get("tool"), str):
        # opencode's stand-in for a call of a tool that doesn't exist.
        return _call_by_name(Event("tool_call", name=arguments["tool"]), server)
    if method := _HELP_NAMES.get(name):
        asked = arguments.get("server")
        about = str(arguments.get("query") or "") if method == "tools/list" else server.name
        if asked not in (None, "", server.name) or server.name not in about:
            return None
        without_server = {key: value for key, value in arguments.items() if key != "server"}
        return McpCall(method, arguments=without_server, help=True)
    if "server" in event.metadata:
        tool = name if event.metadata["server"] == server.name else ""
    else:
        prefixes = (f"mcp__{server.name}__", f"mcp_{server.name}_", f"{server.name}_", f"{server.name}-")
        tool = next((name.removeprefix(each) for each in prefixes if name.startswith(each)), "")
    if not tool:
        return None
    return McpCall(tool, arguments=dict(arguments), help=tool in server.help_tools)


def _is_refused(call: Call) -> bool:
    """Return whether an event says that the agent itself refused the call, of an unknown tool or with wrong arguments."""
    if call.not_run or call.event.name == "invalid":
        return True
    return call.exit_code not in (None, 0) and "No such tool available" in call_message(call)


class _Pending:
    """The recorded calls that no event took yet.

    They are indexed because an agent can write as many calls as records.
    """

    def __init__(self, record: Sequence[RecordedRequest], paired: Sequence[Call]) -> None:
        self.left = dict(enumerate(record))
        self._by_id = {request.id: number for number, request in self.left.items() if request.id}
        # Codex sends ids with its calls that its events don't have.
        self._has_ids = any(call.event.id in self._by_id for call in paired)
        self._with_ids = {_plain(request.tool) for request in record if request.id}
        self._by_tool: dict[str, deque[int]] = defaultdict(deque)
        self._by_line: dict[str, dict[str, deque[int]]] = {}
        for number, request in self.left.items():
            self._by_tool[_plain(request.tool)].append(number)

    def take(self, named: McpCall, id: str) -> RecordedRequest | None:
        """Remove and return the recorded call with the id, else of the same tool, preferably with the same arguments."""
        if (number := self._by_id.get(id)) in self.left:
            return self.left.pop(number) if number is not None else None
        tool = _plain(named.tool)
        if self._has_ids and tool in self._with_ids:
            return None
        if tool not in self._by_tool:
            return None
        number = self._first(self._lines(tool)[named.line])
        if number is None:
            number = self._first(self._by_tool[tool])
        return None if number is None else self.left.pop(number)

    def _lines(self, tool: str) -> dict[str, deque[int]]:
        """Return the numbers of a tool's calls by their lines."""
        if tool not in self._by_line:
            lines = self._by_line[tool] = defaultdict(deque)
            for number in self._by_tool[tool]:
                request = self.left[number]
                lines[call_line(request.tool, request.arguments)].append(number)
        return self._by_line[tool]

    def _first(self, numbers: deque[int]) -> int | None:
        """Return the first number that is left, without those before it."""
        while numbers and numbers[0] not in self.left:
            numbers.popleft()
        return numbers[0] if numbers else None


def refused_calls(stderr: str, server: McpServer) -> tuple[RecordedRequest, ...]:
    """Return the calls of tools that don't exist, which Codex reports on standard error alone."""
    pattern = rf"unsupported call: mcp__{re.escape(server.name)}(?:__|/|\.)?([\w.-]+)"
    return tuple(
        RecordedRequest(match[1], output=match[0], failure=McpFailure.UNKNOWN_TOOL, ended=True)
        for match in re.finditer(pattern, stderr)
    )


def _plain(tool: str) -> str:
    """Return a tool's name as agents write it: only letters, digits, `_` and `-`."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "_-") else "_" for char in tool)


def _judge_call(
    call: Call, server: McpServer, surface: McpSurface | None, recorded: RecordedRequest | bool | None
) -> McpCall | None:
    """Return a call with how it ended.

    `recorded` is the proxy's record of it, False if the call never reached the proxy, None without a proxy.
    """
    named = _call_by_name(call.event, server)
    if named is None:
        return None
    if isinstance(recorded, RecordedRequest):
        return _end_by_record(named, surface, recorded)
    if recorded is False and call.exit_code == 0 and not named.help:
        return msgspec.structs.replace(named, unrecorded=True)
    failure = _failure(call, reached=recorded is not False or named.help)
    return _end_by_events(named, surface, named.tool, failure, call.exit_code is not None)


def _failure(call: Call, *, reached: bool) -> str:
    """Return why a call failed according to the agent's events; empty if it didn't."""
    text = call_message(call)
    if call.event.name == "invalid":
        text = str(call.event.input.get("error") or "")
        return McpFailure.UNKNOWN_TOOL if "unavailable tool" in text else McpFailure.ARGUMENTS
    if call.not_run == "invalid" and call.exit_code is None:
        return McpFailure.UNKNOWN_TOOL if _NOT_FOUND.match(text) else McpFailure.ARGUMENTS
    if call.exit_code in (None, 0):
        return ""
    if "No such tool available" in text:
        return McpFailure.UNKNOWN_TOOL
    # Only the server itself can report `isError`.
    protocol = _BROKEN_OUTPUT.search(text) or (
        call.result is not None and call.result.metadata.get("protocol")
    )
    return McpFailure.PROTOCOL if protocol or not reached or "MCP error -" in text else McpFailure.IS_ERROR


def _end_by_record(named: McpCall, surface: McpSurface | None, recorded: RecordedRequest) -> McpCall:
    """Return a call with how it ended according to the record, whatever the agent made of it."""
    surface = recorded.surface or surface
    mcp_call = _end_by_events(named, surface, recorded.tool, recorded.failure, recorded.ended)
    tool = surface.tool(mcp_call.tool) if surface else None
    if mcp_call.exit_code != 0 or tool is None or tool.output_schema is None:
        return mcp_call
    message = output_problem(tool.output_schema, recorded.output)
    if not message:
        return mcp_call
    return msgspec.structs.replace(mcp_call, failure=str(McpFailure.PROTOCOL), exit_code=1, message=message)


def _end_by_events(
    named: McpCall, surface: McpSurface | None, tool: str, failure: str, ended: bool
) -> McpCall:
    names = [each.name for each in surface.tools] if surface else []
    exact = tool if tool in names else next((name for name in names if _plain(name) == tool), tool)
    if failure and failure != McpFailure.UNKNOWN_TOOL and not named.help:
        schema = surface.schema(exact) if surface else None
        if surface and schema is None:
            failure = McpFailure.UNKNOWN_TOOL
        elif schema is not None and argument_problems(schema, named.arguments or {}):
            failure = McpFailure.ARGUMENTS
    code = int(bool(failure)) if ended or failure else None
    return msgspec.structs.replace(named, tool=exact, failure=str(failure), exit_code=code)


def _add_events(
    id: str, request: RecordedRequest, server: McpServer, surface: McpSurface | None, shown_as: str
) -> Iterator[Event]:
    """Yield call and result of a recorded call that the agent's events lack."""
    is_help = request.tool in _HELP_METHODS or request.tool in server.help_tools
    named = McpCall(request.tool, shown_as, request.arguments, help=is_help)
    mcp_call = _end_by_record(named, surface, request)
    metadata = {"server": server.name, MCP_MARK: msgspec.to_builtins(mcp_call)}
    yield Event("tool_call", id, request.tool, input=request.arguments, metadata=metadata)
    if request.ended:
        yield Event(
            "tool_result", id, output=request.output, success=not request.failure, seconds=request.seconds
        )

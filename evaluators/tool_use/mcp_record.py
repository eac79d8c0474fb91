"""Read the record of an MCP server's proxy, and what the server shows to agents: instructions and tools.

A record has requests, results and times, one JSON object a line.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct, structs

from evaluators.model import Json
from evaluators.tool_use.exposure import estimated_tokens


class McpTool(Struct, frozen=True, omit_defaults=True):
    """One tool of `tools/list`."""

    name: str
    description: str = ""
    schema: dict[str, Json] = {}
    """Its `inputSchema`."""
    output_schema: dict[str, Json] | None = None
    """Its `outputSchema`; None without one. Models don't read it, so it isn't stored with surfaces."""

    @property
    def tokens(self) -> int:
        """An estimate from the number of characters, as compact JSON."""
        return estimated_tokens(msgspec.json.encode(_as_read(self)).decode())

    @property
    def text(self) -> str:
        """Return description and schema as text for people."""
        return (
            f"{self.description}\n\n{json.dumps(self.schema, indent=2, ensure_ascii=False, sort_keys=True)}\n"
        )


class McpSurface(Struct, frozen=True, omit_defaults=True):
    """Everything of a server that an agent's model reads before its first call."""

    server: str
    version: str = ""
    """The server's own."""
    instructions: str = ""
    tools: tuple[McpTool, ...] = ()

    def schema(self, tool: str) -> dict[str, Json] | None:
        """Return the schema of a tool's arguments; None if there is no such tool."""
        mcp_tool = self.tool(tool)
        return mcp_tool.schema if mcp_tool else None

    def tool(self, name: str) -> McpTool | None:
        """Return a tool by its name."""
        return next((each for each in self.tools if each.name == name), None)

    @property
    def documents(self) -> dict[str, str]:
        """Return instructions and tools as texts by name."""
        texts = {f"{self.server}: instructions": self.instructions} if self.instructions else {}
        return texts | {f"{self.server}: {each.name}": each.text for each in self.tools}

    @property
    def tokens(self) -> int:
        """The tokens of tools and instructions."""
        instructions = estimated_tokens(self.instructions) if self.instructions else 0
        return instructions + sum(each.tokens for each in self.tools)


def surface_of(server: str, answer: Mapping[str, Json]) -> McpSurface:
    """Return the surface in a listing: `tools`, `instructions` and `serverInfo` as MCP names them."""
    about = answer.get("serverInfo")
    tools = [each for each in answer.get("tools") or () if isinstance(each, dict) and each.get("name")]
    return McpSurface(
        server,
        str((about if isinstance(about, dict) else {}).get("version") or ""),
        str(answer.get("instructions") or ""),
        tuple(sorted(map(_tool, tools), key=lambda tool: tool.name)),
    )


def _tool(entry: Mapping[str, Json]) -> McpTool:
    schema, output = entry.get("inputSchema"), entry.get("outputSchema")
    return McpTool(
        str(entry["name"]),
        str(entry.get("description") or ""),
        schema if isinstance(schema, dict) else {},
        output if isinstance(output, dict) else None,
    )


def join_surfaces(surfaces: Iterable[McpSurface]) -> McpSurface | None:
    """Return all tools of several listings of a server, each as it was listed last; None without a listing."""
    surface: McpSurface | None = None
    tools: dict[str, McpTool] = {}
    for surface in surfaces:
        tools |= {each.name: each for each in surface.tools}
    return surface and msgspec.structs.replace(surface, tools=tuple(tools[name] for name in sorted(tools)))


def encode_surfaces(surfaces: Sequence[McpSurface]) -> str:
    """Return surfaces as stored: surfaces that read the same are equal texts."""
    read = [msgspec.structs.replace(each, tools=tuple(map(_as_read, each.tools))) for each in surfaces]
    return msgspec.json.encode(read, order="deterministic").decode()


def _as_read(tool: McpTool) -> McpTool:
    """Return a tool without what models don't read."""
    return msgspec.structs.replace(tool, output_schema=None)


def decode_surfaces(text: str) -> tuple[McpSurface, ...]:
    """Return the surfaces in a text of `encoded`."""
    return msgspec.json.decode(text, type=tuple[McpSurface, ...])


_METHODS = ("tools/call", "resources/read", "resources/list", "resources/templates/list", "prompts/get")
_REPEATED = ("inputResponses", "requestState")
"""What a request has that repeats one with the input that the server asked for."""
_NO_ARGUMENTS = ("_meta", *_REPEATED)
_MOST_SECONDS = 1e12


class RecordedRequest(Struct, frozen=True, omit_defaults=True):
    """One request of an agent to the server."""

    tool: str
    """The tool of `tools/call`, else the method."""
    arguments: Json = None
    output: Json = None
    failure: str = ""
    """`is_error` or `protocol` (`mcp_calls.McpFailure`)."""
    ended: bool = False
    """Whether there was a response."""
    started: float = 0.0
    """Seconds since the epoch."""
    seconds: float | None = None
    id: str = ""
    """The agent's own id of the call, where it sends one; empty otherwise."""
    surface: McpSurface | None = None
    """What the agent had got of the server's tools by then; None if it had asked for no list."""
    state: Json = None
    """The `requestState` of a response that asks for input."""
    asks: bool = False
    """Whether the last response asks for input (`input_required`): the call goes on with a repeated request."""


def read_mcp_record(content: bytes, *, was_cut: bool = False) -> tuple[RecordedRequest, ...]:
    """Return the calls of tools and resources in order; lines that aren't JSON are left out.

    A request without a response is a failure, unless evalhub ended the agent (`was_cut`): then its end is unknown. So is
    that of a call whose request for input the agent never answered (MCP 2026-07-28, Multi Round-Trip Requests).
    Records of releases without `connection` may have the same numbers for several processes of the server.
    """
    requests: list[RecordedRequest] = []
    opened: dict[str, int] = {}
    listed, asking = _Listings(), _Asking()
    for line in content.splitlines():
        try:
            entry = _entry(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(entry, dict):
            continue
        key = f"{entry.get('connection')} {entry.get('number')}"
        listed.note(key, entry)
        if isinstance(entry.get("request"), dict):
            if call := _call(entry["request"], _seconds(entry.get("time"))):
                if (at := asking.repeated(entry["request"], call)) is not None:
                    opened[key] = at
                    requests[at] = structs.replace(requests[at], asks=False)
                    continue
                opened[key] = len(requests)
                requests.append(structs.replace(call, surface=listed.seen_by(entry.get("connection"))))
            else:
                opened.pop(key, None)
        elif (at := opened.get(key)) is None:
            continue
        elif entry.get("given_up"):
            requests[at] = structs.replace(
                requests[at], failure="protocol", output="The agent gave the call up."
            )
        elif isinstance(entry.get("response"), dict):
            requests[at] = _end_request(requests[at], entry["response"], _seconds(entry.get("seconds")))
            if requests[at].asks:
                asking.note(at, requests[at])
    return tuple(requests if was_cut else map(_without_answer, requests))


def find_listings(content: bytes) -> tuple[McpSurface, ...]:
    """Return what the server listed to the agent, in order: all pages as of each list that was asked for."""
    listed, surfaces = _Listings(), list[McpSurface]()
    for line in content.splitlines():
        try:
            entry = _entry(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            key = f"{entry.get('connection')} {entry.get('number')}"
            if (surface := listed.note(key, entry)) is not None:
                surfaces.append(surface)
    return tuple(surfaces)


class _Listings:
    """The tools that each connection of the agent was shown."""

    def __init__(self) -> None:
        self._asked: dict[str, bool] = {}
        """Whether a request is for the first page, by its key."""
        self._tools: dict[Json, list[Json]] = {}
        self._surfaces: dict[Json, McpSurface] = {}
        self._last: McpSurface | None = None

    def seen_by(self, connection: Json) -> McpSurface | None:
        """Return the last list on a connection, else on any: over HTTP, each request may have its own."""
        return self._surfaces.get(connection, self._last)

    def note(self, key: str, entry: dict[str, Json]) -> McpSurface | None:
        """Take in one line of the record; return the list as it is now if the line changed it."""
        request, response = entry.get("request"), entry.get("response")
        if isinstance(request, dict):
            self._asked.pop(key, None)
            if request.get("method") == "tools/list":
                params = request.get("params")
                self._asked[key] = not (isinstance(params, dict) and params.get("cursor"))
        elif isinstance(response, dict) and key in self._asked:
            return self._page(entry.get("connection"), response.get("result"), first=self._asked.pop(key))
        return None

    def _page(self, connection: Json, result: Json, *, first: bool) -> McpSurface | None:
        if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
            return None  # an error, or too long to be recorded
        before = [] if first else self._tools.get(connection, [])
        tools = self._tools[connection] = [*before, *result["tools"]]
        self._last = self._surfaces[connection] = surface_of("", {"tools": tools})
        return self._last


def _without_answer(call: RecordedRequest) -> RecordedRequest:
    """Return a call that had no response, or that the agent gave up before, as a failure of the protocol."""
    if call.ended or call.asks:
        return call
    return structs.replace(call, failure="protocol", ended=True, output=call.output or "No response.")


def _entry(line: bytes) -> Json:
    """Return a line's JSON; half of a surrogate pair, which nothing can store, becomes `?`. Raises `ValueError`."""
    entry = json.loads(line)
    if b"\\ud" in line.lower():
        entry = json.loads(json.dumps(entry, ensure_ascii=False).encode(errors="replace"))
    return entry


def _call(request: dict[str, Json], started: float) -> RecordedRequest | None:
    method, params = request.get("method"), request.get("params")
    fields = params if isinstance(params, dict) else {}
    if method == "tools/call":
        id = _call_id(fields.get("_meta"))
        return RecordedRequest(str(fields.get("name") or ""), fields.get("arguments"), started=started, id=id)
    if method not in _METHODS:
        return None
    return RecordedRequest(
        str(method),
        {key: value for key, value in fields.items() if key not in _NO_ARGUMENTS},
        started=started,
    )


class _Asking:
    """The calls whose server asked for input."""

    def __init__(self) -> None:
        self._indices: dict[bytes, deque[int]] = defaultdict(deque)

    def note(self, at: int, call: RecordedRequest) -> None:
        """Take in a call that may go on with a repeated request."""
        self._indices[self._key(call, call.state)].append(at)

    def repeated(self, request: dict[str, Json], call: RecordedRequest) -> int | None:
        """Return the index of the call that a request goes on with; None for a new call."""
        params = request.get("params")
        fields = params if isinstance(params, dict) else {}
        if not any(name in fields for name in _REPEATED):
            return None
        indices = self._indices[self._key(call, fields.get("requestState"))]
        return indices.popleft() if indices else None

    def _key(self, call: RecordedRequest, state: Json) -> bytes:
        return json.dumps((call.tool, call.arguments, state), sort_keys=True).encode(errors="replace")


def _call_id(meta: Json) -> str:
    """Return the id of a call that Claude Code and Codex send with it."""
    fields = meta if isinstance(meta, dict) else {}
    # Claude Code and Codex send a call's id in `_meta`.
    call_id = next(
        (fields[name] for name in ("claudecode/toolUseId", "callId") if isinstance(fields.get(name), str)), ""
    )
    return str(call_id)


def _end_request(call: RecordedRequest, response: dict[str, Json], seconds: float) -> RecordedRequest:
    seconds += call.seconds or 0.0  # of the requests that this one repeats
    if call.failure:  # the agent gave it up
        return structs.replace(call, ended=True, seconds=seconds)
    result, error = response.get("result"), response.get("error")
    if isinstance(result, dict) and result.get("resultType") == "input_required":
        return structs.replace(call, asks=True, state=result.get("requestState"), seconds=seconds)
    failure = "protocol" if error is not None else ""
    if isinstance(result, dict) and result.get("isError"):
        failure = "is_error"
    output = error.get("message") if isinstance(error, dict) else error if error is not None else result
    return structs.replace(call, output=output, failure=failure, ended=True, seconds=seconds)


def _seconds(value: Json) -> float:
    # The agent can write whole numbers here that no float holds.
    return float(value) if isinstance(value, int | float) and abs(value) < _MOST_SECONDS else 0.0

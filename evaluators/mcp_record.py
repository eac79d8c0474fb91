"""Read what the proxy of an MCP server recorded: requests, results and times, one JSON object a line."""

from __future__ import annotations

import json

from msgspec import Struct

from evaluators.model import Json

_METHODS = ("tools/call", "resources/read", "resources/list", "resources/templates/list")

_MOST_SECONDS = 1e12


class RecordedCall(Struct, frozen=True, omit_defaults=True):
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


def read_record(content: bytes) -> tuple[RecordedCall, ...]:
    """Return the calls of tools and resources in order; lines that are no JSON are left out."""
    found: dict[str, RecordedCall] = {}
    for line in content.splitlines():
        try:
            entry = _entry(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(entry, dict):
            continue
        key = str(entry.get("number"))
        if isinstance(entry.get("request"), dict):
            if call := _call(entry["request"], _seconds(entry.get("time"))):
                found[key] = call
        elif key in found and isinstance(entry.get("response"), dict):
            found[key] = _ended(found[key], entry["response"], _seconds(entry.get("seconds")))
    return tuple(found.values())


def _entry(line: bytes) -> Json:
    """Return a line's JSON; half of a surrogate pair, which nothing can store, becomes `?`. Raises `ValueError`."""
    found = json.loads(line)
    if b"\\ud" in line.lower():
        found = json.loads(json.dumps(found, ensure_ascii=False).encode(errors="replace"))
    return found


def _call(request: dict[str, Json], started: float) -> RecordedCall | None:
    method, params = request.get("method"), request.get("params")
    given = params if isinstance(params, dict) else {}
    if method == "tools/call":
        return RecordedCall(str(given.get("name") or ""), given.get("arguments"), started=started)
    if method not in _METHODS:
        return None
    return RecordedCall(
        str(method), {key: each for key, each in given.items() if key != "_meta"}, started=started
    )


def _ended(call: RecordedCall, response: dict[str, Json], seconds: float) -> RecordedCall:
    result, error = response.get("result"), response.get("error")
    failure = "protocol" if error is not None else ""
    if isinstance(result, dict) and result.get("isError"):
        failure = "is_error"
    output = error.get("message") if isinstance(error, dict) else error if error is not None else result
    return RecordedCall(call.tool, call.arguments, output, failure, True, call.started, seconds)


def _seconds(value: Json) -> float:
    # The agent can write whole numbers here that no float holds.
    return float(value) if isinstance(value, int | float) and abs(value) < _MOST_SECONDS else 0.0

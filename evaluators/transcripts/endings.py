"""How a coding agent's session ended: its final result, its last event, what its model's service said, and what was cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec import Struct, structs

from evaluators.json_values import int_or_none
from evaluators.model import Event, Json, Transcript
from evaluators.transcripts.reading import UnreadableTranscript
from evaluators.transcripts.stream import (
    Object,
    json_or_none,
    mapping_or_empty,
    parse_objects,
    text_of_message,
    text_or_none,
)


class SessionEnd(Struct, frozen=True):
    """The end of a session, as its stream shows it."""

    closed: bool = False
    """Whether the stream has its closing event."""
    answered: bool = False
    """Whether the agent printed its final result."""
    failure: str = ""
    """The service's own words, if a failed request is the last thing in the stream; empty otherwise."""
    status: int | None = None
    """The failure's HTTP status; None without one, such as for a broken connection."""


class FailedRequest(Struct, frozen=True):
    """A request that a model's service didn't answer, in the service's own words; empty for none."""

    said: str = ""
    status: int | None = None


def ending_of(parser: str, raw: bytes) -> SessionEnd | None:
    """Return how a session ended; None for other formats and for output that can't be read.

    Only failures that are the service's are reported: no connection and the statuses of `is_of_service`. A
    context that overflowed, refused content and other requests that the service calls wrong are the agent's.
    """
    reader = _READERS.get(parser)
    if reader is None:
        return None
    try:
        lines, _ = parse_objects(raw, parser)
    except UnreadableTranscript:
        return None
    return reader(lines)


def is_of_service(status: int) -> bool:
    """Return whether a status is about the service or the access to it, not about what a request says."""
    return status in (401, 402, 403, 404, 408, 429) or 500 <= status <= 599


def with_cut_ends(transcript: Transcript) -> Transcript:
    """Return the transcript of a session that evalhub ended, by a time limit or otherwise.

    A failure that no later turn of its agent follows is unknown: programs report commands that were killed with
    them as failed, and nothing distinguishes these from others.
    """
    events = transcript.events
    last: dict[Json, int] = {
        event.metadata.get("agent"): at for at, event in enumerate(events) if _is_turn(event)
    }
    cut_events = tuple(
        structs.replace(event, exit_code=None, success=None)
        if _has_failed(event) and at > last.get(event.metadata.get("agent"), -1)
        else event
        for at, event in enumerate(events)
    )
    return structs.replace(transcript, events=cut_events)


def _is_turn(event: Event) -> bool:
    """Return whether an event is the model's."""
    return event.type in ("tool_call", "model_step") or (
        event.type == "message" and event.role not in ("user", "agent")
    )


def _has_failed(event: Event) -> bool:
    return event.type == "tool_result" and (bool(event.exit_code) or event.success is False)


# Claude Code.

_API_ERROR = re.compile(r"API Error: (\d{3})\b")
_WITHOUT_STATUS = frozenset(
    (
        "authentication_failed",
        "billing_error",
        "model_not_found",
        "oauth_org_not_allowed",
        "overloaded",
        "rate_limit",
        "server_error",
        "unknown",
    )
)
"""Claude Code's kinds of failed requests that are the service's, where no status came back."""
_WORDS_ALONE = re.compile(
    r"API Error: (?:Connection|Request timed out|Unable to connect)|Invalid API key\b|Credit balance is too low"
    r"|Not logged in\b|OAuth (?:token|account|session)\b|Failed to authenticate\b|Claude (?:AI )?usage limit reached"
)
"""How the results of older versions begin, which name neither kind nor status."""


def _claude_code(lines: list[Object]) -> SessionEnd:
    results = [line for line in lines if line.get("type") == "result"]
    answered = any(not line.get("is_error") for line in results)
    last = next(
        (
            line
            for line in reversed(lines)
            if line.get("type") in ("assistant", "user", "result", "stream_event")
            or line.get("subtype") == "api_retry"
        ),
        {},
    )
    failure, status = "", None
    if last.get("type") == "result" and last.get("is_error"):
        failure, status = _claude_failure(last, _api_error_message(lines))
    elif last.get("subtype") == "api_retry":
        status = int_or_none(last.get("error_status"))
        failure = text_or_none(last.get("error")) or "The request failed."
    elif last.get("is_api_error_message"):
        failure, status = _claude_failure({}, last)
    return _ending(closed=bool(results), answered=answered, failure=failure, status=status)


def _api_error_message(lines: list[Object]) -> Object:
    """Return the message in which Claude Code says that a request failed."""
    last = next((line for line in reversed(lines) if line.get("type") == "assistant"), {})
    return last if last.get("is_api_error_message") or last.get("error") else {}


def _claude_failure(result: Object, message: Object) -> tuple[str, int | None]:
    """Return a failed request's words and status; no words where something else ended the session."""
    text = text_or_none(result.get("result")) or text_of_message(
        mapping_or_empty(message.get("message")).get("content")
    )
    status = int_or_none(result.get("api_error_status"))
    status = status if status is not None else int_or_none(message.get("api_error_status"))
    named = text_or_none(message.get("error"))
    if status is None and not named:
        # Only then do the words for the end count: releases for Node 20 call an outage "completed".
        reason = text_or_none(result.get("terminal_reason"))
        ended = result.get("subtype") in (None, "success") if reason is None else reason == "api_error"
        if not ended:
            return "", None
    if status is None and (api_error := _API_ERROR.search(text[:200])):
        status = int(api_error[1])
    if status is None and not (named in _WITHOUT_STATUS if named else _WORDS_ALONE.match(text)):
        return "", None
    return text, status


# Codex.

_RECONNECTING = re.compile(r"Reconnecting\.\.\.[^(]*(?:\((.*)\))?$", re.DOTALL)
_CODEX_STATUS = re.compile(r"(?:unexpected status|last status:?|\(status) (\d{3})\b")
_CODEX_SERVICE = re.compile(
    r"stream (?:disconnected before completion|error): (?!Incomplete response returned)"
    r"|Connection failed: |Error while reading the server response: |error sending request\b|request timed out\b"
    r"|Selected model is at capacity|Quota exceeded\.|You.ve hit your usage limit|To use Codex with your ChatGPT plan"
    r"|Your access token could not be refreshed|Flex capacity unavailable"
)
"""How Codex's messages begin for failures that are its service's and have no status."""
_HIGH_DEMAND = re.compile(r"We.re currently experiencing high demand")
"""What Codex writes for HTTP 500."""


def _codex(lines: list[Object]) -> SessionEnd:
    kinds = [text_or_none(line.get("type")) or "" for line in lines]
    if kinds == [""]:
        # A single answer instead of a stream.
        return SessionEnd(closed=True, answered=True)
    last = kinds[-1]
    answered = "turn.completed" in kinds
    failure, status = "", None
    if last in ("turn.failed", "error"):
        said = lines[-1].get("error", lines[-1].get("message"))
        failure, status = _codex_failure(
            text_or_none(said) or text_or_none(mapping_or_empty(said).get("message")) or ""
        )
    return _ending(
        closed=answered or "turn.failed" in kinds, answered=answered, failure=failure, status=status
    )


def _codex_failure(message: str) -> tuple[str, int | None]:
    waiting = _RECONNECTING.match(message)
    if waiting and not waiting[1]:
        return message, None
    message = waiting[1] if waiting else message
    if match := _CODEX_STATUS.search(message):
        return message, int(match[1])
    if _HIGH_DEMAND.match(message):
        return message, 500
    return (message, None) if _CODEX_SERVICE.match(message) else ("", None)


# opencode.

_RETRIES = re.compile(r'message="stream error" .*\berror\.error="((?:[^"\\]|\\.)*)"')
_GOES_ON = re.compile(r"message=(?:loop|process|evaluated)\b")
_CLASS = re.compile(r"\w+Error: ")


def _opencode(lines: list[Object]) -> SessionEnd:
    steps = [mapping_or_empty(line.get("part")) for line in lines if line.get("type") == "step_finish"]
    answered = any(text_or_none(step.get("reason")) not in (None, "tool-calls") for step in steps)
    last = lines[-1]
    failure, status = "", None
    if last.get("type") == "error":
        failure, status = _opencode_failure(mapping_or_empty(last.get("error")))
    # A session whose call was rejected ends after that step.
    closed = answered or last.get("type") in ("step_finish", "error")
    return _ending(closed=closed, answered=answered, failure=failure, status=status)


def _opencode_failure(error: Object) -> tuple[str, int | None]:
    data, name = mapping_or_empty(error.get("data")), text_or_none(error.get("name"))
    status = int_or_none(data.get("statusCode"))
    if name not in ("APIError", "ProviderAuthError"):
        return "", None
    if status is None and name == "APIError" and data.get("isRetryable") is False:
        return "", None
    return text_or_none(data.get("message")) or name or "", status


def failure_in_opencode_log(log: str) -> FailedRequest:
    """Return the failed request that opencode's log ends with; an empty one if the session went on.

    opencode repeats failed requests without an end and without a word in its stream.
    """
    failure = ""
    for line in log.splitlines():
        if "small=true" in line:
            # A title; the session doesn't depend on it.
            continue
        if retry := _RETRIES.search(line):
            failure = _CLASS.sub("", retry[1].replace('\\"', '"'), count=1)
        elif _GOES_ON.search(line):
            failure = ""
    return FailedRequest(failure)


# Gemini CLI, Qwen Code and Copilot CLI.

_FAILED_REQUEST = re.compile(r"\s*\[API Error: ")
_STATED_STATUS = re.compile(r"(?:\"code\":\s*\"?|\[API Error: )(\d{3})\b")


def _gemini_cli(lines: list[Object]) -> SessionEnd:
    results = [line for line in lines if line.get("type") == "result"]
    last = results[-1] if results else {}
    failed = last.get("status") == "error"
    said = text_or_none(mapping_or_empty(last.get("error")).get("message")) or ""
    failure, status = _failed_request(said) if failed else ("", None)
    answered = bool(results) and not failed
    return _ending(closed=bool(results), answered=answered, failure=failure, status=status)


def _qwen_code(lines: list[Object]) -> SessionEnd:
    """Return the end of a session whose failed request is its answer."""
    results = [line for line in lines if line.get("type") == "result"]
    last = results[-1] if results else {}
    error = text_or_none(mapping_or_empty(last.get("error")).get("message"))
    failure, status = _failed_request(error or text_or_none(last.get("result")) or "")
    answered = bool(results) and not failure and not last.get("is_error")
    return _ending(closed=bool(results), answered=answered, failure=failure, status=status)


def _failed_request(said: str) -> tuple[str, int | None]:
    if not _FAILED_REQUEST.match(said):
        return "", None
    status = _STATED_STATUS.search(said[:1_000])
    return said.strip(), int(status[1]) if status else None


_COPILOT_FAILURES = ("session.error", "model.call_failure")
"""The second is of each attempt, so that it is the last event of a session that repeats a request until it is cut."""
_COPILOT_ANSWERS = ("assistant.message", "assistant.streaming", "assistant.reasoning", "tool.execution_start")
"""How the types of events begin that a request has answered."""


def _kind(line: Object) -> str:
    return text_or_none(line.get("type")) or ""


def _copilot_words(failure: Object) -> str:
    said = text_or_none(failure.get("message")) or text_or_none(failure.get("errorMessage")) or ""
    inner = json_or_none(said)
    return text_or_none(inner) or text_or_none(mapping_or_empty(inner).get("message")) or said


def _copilot_cli(lines: list[Object]) -> SessionEnd:
    closed = any(line.get("type") == "result" for line in lines)
    steps = (line for line in reversed(lines) if _kind(line).startswith(_COPILOT_FAILURES + _COPILOT_ANSWERS))
    step = next(steps, {})
    last = mapping_or_empty(step.get("data"))
    failed = _kind(step) in _COPILOT_FAILURES
    failure = _copilot_words(last) if failed else ""
    answered = closed and not failed
    return _ending(
        closed=closed, answered=answered, failure=failure, status=int_or_none(last.get("statusCode"))
    )


_READERS: Mapping[str, Callable[[list[Object]], SessionEnd]] = {
    "claude_code": _claude_code,
    "codex": _codex,
    "opencode": _opencode,
    "gemini_cli": _gemini_cli,
    "qwen_code": _qwen_code,
    "copilot_cli": _copilot_cli,
}


def _ending(*, closed: bool, answered: bool, failure: str, status: int | None) -> SessionEnd:
    if answered or not failure or (status is not None and not is_of_service(status)):
        return SessionEnd(closed, answered)
    return SessionEnd(closed, answered, " ".join(failure.split()), status)

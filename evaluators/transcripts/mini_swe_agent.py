"""A trajectory of mini-swe-agent: one JSON object with the messages of a session, and what each command returned.

Its second release states commands and exit codes beside the messages; the first only in their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import structs

from evaluators.json_values import int_or_none
from evaluators.model import Event, Json, NotRun, Transcript, Usage, total_usage
from evaluators.transcripts.reading import UnreadableTranscript, decode_output
from evaluators.transcripts.stream import (
    Object,
    count_or_zero,
    format_milliseconds,
    make_transcript,
    mapping_or_empty,
    text_of_message,
    text_or_none,
)

_FENCED = re.compile(r"```(?:bash|mswea_bash_command)[ \t]*\n(.*?)\n?```", re.DOTALL)
_RETURNED = re.compile(r"\A\s*<returncode>\s*(-?\d{1,9})\s*</returncode>")
_REJECTED = re.compile(r"Commands? not executed\b")


def parse(raw: bytes) -> Transcript:
    """Return the trajectory. Raises `UnreadableTranscript` if it isn't mini-swe-agent's."""
    value = decode_output(raw)
    if not isinstance(value, dict) or not is_mini_trajectory(value):
        raise UnreadableTranscript(
            "The output isn't a trajectory of mini-swe-agent. Let it write one with `-o`, and give that file."
        )
    return read_mini_trajectory(value)


def is_mini_trajectory(value: Object) -> bool:
    """Return whether a decoded file is a trajectory of mini-swe-agent, and not of SWE-agent."""
    info = mapping_or_empty(value.get("info"))
    format = text_or_none(value.get("trajectory_format")) or ""
    is_own = format.startswith("mini-swe-agent") or "mini_version" in info
    return is_own and isinstance(value.get("messages"), list)


def read_mini_trajectory(value: Object) -> Transcript:
    """Return what a decoded trajectory says."""
    listed = value.get("messages")
    messages = [mapping_or_empty(each) for each in (listed if isinstance(listed, list) else ())]
    info = mapping_or_empty(value.get("info"))
    cost = mapping_or_empty(info.get("model_stats")).get("instance_cost")
    return make_transcript(
        _read(messages),
        answer=text_or_none(info.get("submission")) or "",
        usage=total_usage(_usage_of(message) for message in messages),
        # It reports 0 for models without a known price.
        cost_usd=cost if isinstance(cost, float) and cost > 0 else None,
    )


def read_mini_swe_model(value: Object) -> str:
    """Return the model that a trajectory names; empty without one."""
    config = mapping_or_empty(mapping_or_empty(value.get("info")).get("config"))
    return text_or_none(mapping_or_empty(config.get("model")).get("model_name")) or ""


def _read(messages: Sequence[Object]) -> list[Event]:
    events: list[Event] = []
    waiting: list[str] = []
    """The calls without a result so far."""
    for number, message in enumerate(messages):
        role, extra = text_or_none(message.get("role")) or "", mapping_or_empty(message.get("extra"))
        text, time = text_of_message(message.get("content")), _time(extra)
        if role == "assistant":
            start = len(events)
            events += [Event("message", role=role, text=text, timestamp=time)] if text else []
            calls = list(_calls(extra, text, number, time))
            events += calls
            waiting = [str(call.id) for call in calls]
            if len(events) > start:
                events[start] = structs.replace(events[start], usage=_usage_of(message))
        elif role in ("user", "tool"):
            result = _result(message, extra, text, waiting, time)
            if result is not None:
                waiting = [id for id in waiting if id != result.id]
                events.append(result)
            elif waiting and _REJECTED.match(text):
                events += [Event("tool_result", id, output=text, not_run="rejected") for id in waiting]
                waiting = []
            elif role == "user":
                events.append(Event("message", role=role, text=text, timestamp=time))
    return events


def _calls(extra: Object, text: str, number: int, time: str | None) -> Iterator[Event]:
    actions = extra.get("actions")
    if isinstance(actions, list):
        commands = [mapping_or_empty(action) for action in actions]
    else:
        # The first release runs the only block of an answer, and none if there are several.
        blocks: list[Object] = [{"command": block} for block in _FENCED.findall(text)]
        commands = blocks if len(blocks) == 1 else []
    for place, action in enumerate(commands):
        id = text_or_none(action.get("tool_call_id")) or f"{number}.{place}"
        command = text_or_none(action.get("command"))
        yield Event("tool_call", id, "bash", command, {"command": command}, timestamp=time)


def _result(
    message: Object, extra: Object, text: str, waiting: Sequence[str], time: str | None
) -> Event | None:
    """Return a message as the result of a call, None if it isn't one."""
    id = text_or_none(message.get("tool_call_id")) or next(iter(waiting), None)
    if "returncode" in extra:
        code, output = extra["returncode"], text_or_none(extra.get("raw_output")) or text
    elif waiting and (stated := _RETURNED.match(text)):
        code, output = int(stated[1]), text[stated.end() :]
    else:
        return None
    failure = text_or_none(extra.get("exception_info")) or ""
    not_run: NotRun = "cancelled" if failure == "action was not executed" else ""
    # -1 beside a failure of its own, such as a time limit, isn't an exit code.
    return Event(
        "tool_result",
        id,
        "bash",
        output=output or failure,
        exit_code=None if failure else int_or_none(code),
        timestamp=time,
        not_run=not_run,
    )


def _time(extra: Object) -> str | None:
    seconds = extra.get("timestamp")
    return format_milliseconds(seconds * 1000) if isinstance(seconds, float) else None


def _usage_of(message: Object) -> Usage | None:
    """Return an answer's tokens, as OpenAI's API has them; None without any."""
    response = mapping_or_empty(mapping_or_empty(message.get("extra")).get("response"))
    tokens = mapping_or_empty(response.get("usage"))
    if not tokens:
        return None
    details = mapping_or_empty(tokens.get("prompt_tokens_details"))
    thought: Json = mapping_or_empty(tokens.get("completion_tokens_details")).get("reasoning_tokens")
    return Usage(
        count_or_zero(tokens.get("prompt_tokens")),
        count_or_zero(tokens.get("completion_tokens")),
        cache_read=count_or_zero(details.get("cached_tokens")),
        reasoning=count_or_zero(thought),
    )

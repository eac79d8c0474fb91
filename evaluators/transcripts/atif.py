"""A trajectory in ATIF, the Agent Trajectory Interchange Format of Harbor (versions 1.0 to 1.8): one JSON object.

Exit codes are not part of it: a command's end is unknown, but for agents that state it in what they observed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import structs

from evaluators.model import Event, Json, Transcript, Usage, plausible_cost, total_usage
from evaluators.transcripts.gemini_cli import stated_code
from evaluators.transcripts.reading import UnreadableTranscript, decode_output
from evaluators.transcripts.span_attributes import json_value
from evaluators.transcripts.stream import (
    Object,
    count_or_zero,
    make_transcript,
    mapping_or_empty,
    text_of_message,
    text_or_none,
)
from evaluators.transcripts.traces import as_timestamp, returned_code, shell_command

NEWEST = (1, 8)
"""The last version that is known."""
_VERSION = re.compile(r"ATIF-v(\d{1,4})\.(\d{1,4})")


def parse(raw: bytes) -> Transcript:
    """Return the trajectory. Raises `UnreadableTranscript` if it isn't one."""
    value = decode_output(raw)
    if not isinstance(value, dict) or not is_atif(value):
        raise UnreadableTranscript(
            "The output isn't a trajectory in ATIF: it has no `schema_version` of ATIF, or no `steps`."
        )
    return read_atif(value)


def is_atif(value: Object) -> bool:
    """Return whether a decoded file is a trajectory in ATIF."""
    version = text_or_none(value.get("schema_version")) or ""
    return _VERSION.match(version) is not None and isinstance(value.get("steps"), list)


def read_atif_model(value: Object) -> str:
    """Return the model of a trajectory's agent; empty without one."""
    return text_or_none(mapping_or_empty(value.get("agent")).get("model_name")) or ""


def read_atif(value: Object) -> Transcript:
    """Return what a decoded trajectory says."""
    listed = value.get("steps")
    steps = [mapping_or_empty(each) for each in (listed if isinstance(listed, list) else ())]
    final = mapping_or_empty(value.get("final_metrics"))
    # A copied step counts in its own session.
    own = [step for step in steps if not step.get("is_copied_context")]
    costs = [mapping_or_empty(step.get("metrics")).get("cost_usd") for step in own]
    known = [cost for cost in map(plausible_cost, costs) if cost is not None]
    total = plausible_cost(final.get("total_cost_usd"))
    usage = total_usage(_usage(step) for step in own)
    names: dict[str, str | None] = {}
    return make_transcript(
        [event for step in own for event in _step(step, names)],
        usage=usage or _final_usage(final),
        cost_usd=total if total is not None else sum(known) if known else None,
        problems=_newer(text_or_none(value.get("schema_version")) or ""),
    )


def _newer(version: str) -> tuple[str, ...]:
    match = _VERSION.match(version)
    if match is None or (int(match[1]), int(match[2])) <= NEWEST:
        return ()
    newest = ".".join(map(str, NEWEST))
    return (f"{version} is newer than the versions that evalhub knows (up to {newest}).",)


def _step(step: Object, names: dict[str, str | None]) -> list[Event]:
    """Return a step's events; the first of an agent's has its usage. `names` are the tools of calls by id."""
    events = list(_events(step, names))
    if events and (used := _usage(step)):
        events[0] = structs.replace(events[0], usage=used)
    return events


def _events(step: Object, names: dict[str, str | None]) -> Iterator[Event]:
    time, source = as_timestamp(step.get("timestamp")), step.get("source")
    if thought := text_or_none(step.get("reasoning_content")):
        yield Event("model_step", name="reasoning", text=thought, timestamp=time)
    text = text_of_message(step.get("message"))
    if text and source in ("user", "agent"):
        yield Event("message", role="user" if source == "user" else "assistant", text=text, timestamp=time)
    calls = step.get("tool_calls")
    called = []
    for call in map(mapping_or_empty, calls if isinstance(calls, list) else ()):
        id = text_or_none(call.get("tool_call_id")) or f"call-{len(names) + 1}"
        name = text_or_none(call.get("function_name"))
        arguments = json_value(call.get("arguments"))
        names[id] = name
        called.append(id)
        yield Event("tool_call", id, name, _command(name, arguments), arguments, timestamp=time)
    results = mapping_or_empty(step.get("observation")).get("results")
    for result in map(mapping_or_empty, results if isinstance(results, list) else ()):
        call_id = text_or_none(result.get("source_call_id")) or (called[0] if len(called) == 1 else "")
        # Some agents write what they observed with the next step.
        if call_id in names:
            output, name = text_of_message(result.get("content")), names[call_id]
            # Of Gemini CLI's and Qwen Code's tool as those programs state it.
            code = stated_code(output) if name == "run_shell_command" else None
            code = returned_code(output) if code is None else code
            yield Event("tool_result", call_id, name, output=output, exit_code=code, timestamp=time)


def _command(name: str | None, arguments: Json) -> str | None:
    """Return a call's command line: of a shell tool, or the keys that terminus types into a terminal."""
    if name == "bash_command" and isinstance(arguments, dict):
        keys = text_or_none(arguments.get("keystrokes")) or text_or_none(arguments.get("command"))
        return keys.rstrip("\n") if keys else None
    return shell_command(name, arguments)


def _usage(step: Object) -> Usage | None:
    """Return a step's tokens: input includes the cache. None without any."""
    metrics = mapping_or_empty(step.get("metrics"))
    if not {"prompt_tokens", "completion_tokens"} & metrics.keys():
        return None
    return Usage(
        count_or_zero(metrics.get("prompt_tokens")),
        count_or_zero(metrics.get("completion_tokens")),
        cache_read=count_or_zero(metrics.get("cached_tokens")),
    )


def _final_usage(final: Object) -> Usage | None:
    if not {"total_prompt_tokens", "total_completion_tokens"} & final.keys():
        return None
    return Usage(
        count_or_zero(final.get("total_prompt_tokens")),
        count_or_zero(final.get("total_completion_tokens")),
        cache_read=count_or_zero(final.get("total_cached_tokens")),
    )

"""Rollout files of Codex, `~/.codex/sessions/**/*.jsonl`: response items and events, wrapped in `payload`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from msgspec import structs

from evaluators.model import Event, Json, Usage
from evaluators.sessions.session import Problems, Session, objects, only_session, span_of
from evaluators.traces import shell_command, timestamp
from evaluators.transcripts.stream import Object, json_of, mapping, text_of, transcript, whole, words

_OWN = re.compile(rb'"type"\s*:\s*"(?:session_meta|response_item|turn_context|event_msg)"')
_EXIT_CODE = re.compile(r"(?:Exit code:|Process exited with code) (-?\d{1,5})\b")
_OUTPUT = re.compile(r"^Output:\n", re.MULTILINE)
_HEADER = 1000
"""Characters at the beginning of a result that may name the exit code."""
_LOGIN_SHELL = re.compile(r"^(?:/\S*/)?(?:ba|z|da)?sh$")


def matches(head: bytes) -> bool:
    """Return whether a file begins like a rollout of Codex."""
    return _OWN.search(head) is not None


def parse(file: IO[bytes], problems: Problems) -> Iterator[Session]:
    """Yield the file's session; a continued one has the id of its first part."""
    events: list[Event] = []
    usage: Usage | None = None
    id = model = ""
    reported = 0
    """Events whose turns have their usage, which comes after them."""
    for line in objects(file, problems):
        kind, payload = line.get("type"), mapping(line.get("payload"))
        time = timestamp(line.get("timestamp"))
        if kind == "session_meta":
            id = id or words(payload.get("id")) or ""
        elif kind == "turn_context":
            model = words(payload.get("model")) or model
        elif kind == "response_item":
            events += _item(payload, time)
        elif kind == "event_msg":
            if payload.get("type") == "user_message":
                events.append(
                    Event("message", role="user", text=words(payload.get("message")), timestamp=time)
                )
            usage = _usage(payload, "total_token_usage") or usage
            turn = next((at for at in range(reported, len(events)) if events[at].role != "user"), None)
            if turn is not None and (own := _usage(payload, "last_token_usage")):
                events[turn] = structs.replace(events[turn], usage=own)
                reported = len(events)
    times = span_of(event.timestamp for event in events)
    return only_session(Session(id, transcript(events, usage=usage), model, *times), "Codex")


def _item(item: Object, time: str | None) -> Iterator[Event]:
    kind, id = words(item.get("type")) or "", words(item.get("call_id"))
    if kind == "message":
        # A person's message comes as an event too; the user's items also hold Codex's own context.
        if item.get("role") == "assistant":
            yield Event("message", role="assistant", text=text_of(item.get("content")), timestamp=time)
    elif kind == "reasoning":
        yield Event("model_step", name=kind, text=text_of(item.get("summary")) or None, timestamp=time)
    elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
        yield _call(item, kind, id, time)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield _result(item.get("output"), id, time)


def _call(item: Object, kind: str, id: str | None, time: str | None) -> Event:
    name = words(item.get("name")) or ("shell" if kind == "local_shell_call" else kind)
    given: Json = item.get("action", item.get("arguments", item.get("input")))
    if isinstance(given, str) and given[:1] == "{":
        given = json_of(given.encode())
    return Event("tool_call", id, name, _command(name, given), given, timestamp=time)


def _command(name: str, given: Json) -> str | None:
    """Return the command line: of `["bash", "-lc", LINE]` the line, which the shell reads."""
    words_of = mapping(given).get("command", mapping(given).get("cmd"))
    match words_of:
        case [str(program), "-c" | "-lc", str(line)] if _LOGIN_SHELL.match(program):
            return line
    if name in ("exec_command", "shell_command"):
        return words(words_of)
    return shell_command(name, given)


def _result(output: Json, id: str | None, time: str | None) -> Event:
    """Return a result: JSON with metadata in older rollouts, else text with the exit code in its first lines."""
    decoded = json_of(output.encode()) if isinstance(output, str) and output[:1] == "{" else output
    if isinstance(decoded, dict) and "output" in decoded:
        code = mapping(decoded.get("metadata")).get("exit_code")
        text: Json = decoded["output"]
    else:
        text = text_of(output)
        named = _EXIT_CODE.search(text[:_HEADER])
        code = int(named[1]) if named else None
        if named and (begin := _OUTPUT.search(text)):
            text = text[begin.end() :]
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    return Event("tool_result", id, output=text, exit_code=code, timestamp=time)


def _usage(payload: Object, which: str) -> Usage | None:
    total = mapping(mapping(payload.get("info")).get(which))
    if payload.get("type") != "token_count" or not total:
        return None
    return Usage(whole(total.get("input_tokens")), whole(total.get("output_tokens")))

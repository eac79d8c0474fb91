"""Session files in the shape that Claude Code, Codex, opencode and OTLP exporters write."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

HELP = "Usage: taskmgr <command> [options]\nCommands:\n  create  - Create a task\n  list  - List tasks\nOptions:\n  --json  Print JSON\n"
CREATE_HELP = "Usage: taskmgr create [options] <name>\nOptions:\n  --format FORMAT  how to print it\n"
STEPS = (
    ("./taskmgr --help", 0, HELP),
    ("./taskmgr create --help", 0, CREATE_HELP),
    ("./taskmgr create --fmt json x", 2, "Error: no such option: --fmt\ntry --help"),
    ("./taskmgr create 'Write the docs' --format json --token=abcdef123456", 0, "created 1"),
    ("cat notes.txt && ./taskmgr list", 0, "my notes\n1 Write the docs"),
)
"""Commands, exit codes and outputs: of the tool 5 commands, 1 failed, 2 for help."""
PROMPT = "Please create a task, my mail is me@example.org"


def _time(n: int) -> str:
    return f"2026-11-0{1 + n // 60}T10:{n % 60:02}:00.000Z"


def lines_of(lines: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def claude(id: str = "c-1", steps: Iterable[tuple[str, int, str]] = STEPS) -> bytes:
    common = {"sessionId": id, "cwd": "/home/ann/work", "version": "2.1.0", "isSidechain": False}
    lines: list[dict[str, Any]] = [
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "user", **common, "uuid": "u", "timestamp": _time(0), "message": {"role": "user", "content": PROMPT}},
        {"type": "user", **common, "isMeta": True, "timestamp": _time(0),
         "message": {"role": "user", "content": "<local-command-caveat>"}},
    ]  # fmt: skip
    for n, (command, code, output) in enumerate(steps):
        block = {"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": command}}
        usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 2}
        message = {
            "id": f"m{n}",
            "role": "assistant",
            "model": "claude-x",
            "content": [block],
            "usage": usage,
        }
        lines.append({"type": "assistant", **common, "timestamp": _time(n), "message": message})
        text = f"Exit code {code}\n{output}" if code else output
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": text, "is_error": code != 0}
        lines.append(
            {"type": "user", **common, "timestamp": _time(n + 1), "message": {"role": "user", "content": [result]},
             "toolUseResult": f"Error: {text}" if code else {"stdout": output, "stderr": ""}}
        )  # fmt: skip
    lines.append({"type": "assistant", **common, "timestamp": _time(9),
                  "message": {"id": "end", "role": "assistant", "model": "<synthetic>",
                              "content": [{"type": "text", "text": "Done, wrote to me@example.org."}]}})  # fmt: skip
    return lines_of(lines)


def codex(id: str = "x-1", steps: Iterable[tuple[str, int, str]] = STEPS, *, is_old: bool = False) -> bytes:
    def item(n: int, **payload: Any) -> dict[str, Any]:
        return {"timestamp": _time(n), "type": "response_item", "payload": payload}

    def event(**payload: Any) -> dict[str, Any]:
        return {"timestamp": _time(0), "type": "event_msg", "payload": payload}

    context = [{"type": "input_text", "text": "<environment_context>"}]
    lines = [
        {
            "timestamp": _time(0),
            "type": "session_meta",
            "payload": {"id": id, "cwd": "/work", "cli_version": "0.169.0"},
        },
        item(0, type="message", role="user", content=context),
        event(type="user_message", message=PROMPT),
        {"timestamp": _time(0), "type": "turn_context", "payload": {"model": "gpt-x"}},
    ]
    for n, (command, code, output) in enumerate(steps):
        given = {"command": ["bash", "-lc", command]} if is_old else {"cmd": command, "workdir": "/work"}
        name = "shell" if is_old else "exec_command"
        lines.append(item(n, type="function_call", name=name, arguments=json.dumps(given), call_id=f"t{n}"))
        result = (
            json.dumps({"output": output, "metadata": {"exit_code": code, "duration_seconds": 0.1}})
            if is_old
            else f"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{output}"
        )
        lines.append(item(n + 1, type="function_call_output", call_id=f"t{n}", output=result))
    tokens = {"total_token_usage": {"input_tokens": 75, "output_tokens": 10}}
    lines += [
        event(type="token_count", info=tokens),
        item(9, type="message", role="assistant", content=[{"type": "output_text", "text": "Done."}]),
    ]
    return lines_of(lines)


def opencode(id: str = "ses_1", steps: Iterable[tuple[str, int, str]] = STEPS) -> bytes:
    created = {"created": 1795292738573}
    parts = [
        {"type": "tool", "tool": "bash", "callID": f"t{n}",
         "state": {"status": "completed", "input": {"command": command}, "output": output, "metadata": {"exit": code},
                   "time": {"start": 1795292738573 + n, "end": 1795292738600 + n}}}
        for n, (command, code, output) in enumerate(steps)
    ]  # fmt: skip
    tokens = {"input": 75, "output": 10, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    messages = [
        {"info": {"role": "user", "time": created}, "parts": [{"type": "text", "text": PROMPT}]},
        {"info": {"role": "assistant", "modelID": "o-x", "cost": 0.1, "tokens": tokens, "time": created},
         "parts": [{"type": "step-start"}, *parts, {"type": "text", "text": "Done."}]},
    ]  # fmt: skip
    return json.dumps(
        {"info": {"id": id, "title": "t", "time": created}, "messages": messages}, indent=2
    ).encode()


def otlp(
    id: str = "o-1", steps: Iterable[tuple[str, int, str]] = STEPS, *, on_one_line: bool = False
) -> bytes:
    def span(n: int, **attributes: Any) -> dict[str, Any]:
        pairs = [
            {"key": key.replace("__", "."), "value": {"stringValue": value}}
            for key, value in attributes.items()
        ]
        failed = (
            {"status": {"code": 2, "message": attributes["error__type"]}}
            if "error__type" in attributes
            else {}
        )
        return {"traceId": f"t{id}", "spanId": str(n), "name": "span", "startTimeUnixNano": str(1795292738573000000 + n * 10**9),
                "attributes": pairs, **failed}  # fmt: skip

    model = {
        "gen_ai__operation__name": "chat",
        "gen_ai__request__model": "p-x",
        "gen_ai__conversation__id": id,
    }
    spans = [span(0, **model)]
    for n, (command, code, output) in enumerate(steps):
        tool = {
            "gen_ai__operation__name": "execute_tool",
            "gen_ai__tool__name": "bash",
            "gen_ai__tool__call__arguments": json.dumps({"command": command}),
            "gen_ai__tool__call__result": output,
        }
        ended = {"process__exit__code": str(code)}
        spans.append(span(n + 1, **tool, **ended, **({"error__type": str(code)} if code else {})))
    document = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    return (json.dumps(document) + "\n" if on_one_line else json.dumps(document, indent=1)).encode()

"""Rollout files of Codex, `~/.codex/sessions/**/*.jsonl`: response items and events, wrapped in `payload`.

The header above a command's output says how the command ended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import IO

from msgspec import Struct, structs

from evalhub.lib.limits import LONGEST_TEXT
from evaluators.json_values import int_or_none
from evaluators.model import Event, Json, Usage
from evaluators.transcripts.claude_code import CODEX, find_refusal
from evaluators.transcripts.codex import read_codex_usage
from evaluators.transcripts.sessions.session import (
    Problems,
    Reduce,
    Session,
    Trail,
    keep_whole,
    only_session,
    parse_time,
    read_objects,
    span_of,
)
from evaluators.transcripts.sessions.written_once import content_key, hash_stably
from evaluators.transcripts.stream import (
    Object,
    json_or_none,
    make_transcript,
    mapping_or_empty,
    text_of_message,
    text_or_none,
)
from evaluators.transcripts.traces import as_timestamp, line_of_shell, shell_command

_POWERSHELL = re.compile(r"^(?:.*[\\/])?(?:powershell|pwsh)(?:\.exe)?$", re.IGNORECASE)
_HEADER_LINE = re.compile(
    r"(?:Exit code|Chunk ID|Wall time|Process exited with code|Process running with session ID"
    r"|Original token count|Total output lines|Script (?:completed|failed|running))\b[^\n]*\n?"
)
_EXIT_CODE = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d{1,5})\b", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d+)", re.MULTILINE)
_OUTPUT = re.compile(r"\n*Output:\n")
_INNER = re.compile(r"\btools\.(?:exec_command|shell_command)\s*\(\s*\{")
_COMMAND_KEY = re.compile(r"""(?:^|[\s,{])["']?(?:cmd|command)["']?\s*:\s*(?=["'`])""")
_TEXTS = {
    '"': re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL),
    "`": re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r?\n|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


class Header(Struct, frozen=True):
    """What Codex writes above a command's output."""

    output: str
    exit_code: int | None = None
    session: int | None = None
    """The id of the process, if it still runs."""


def read_header(text: str) -> Header:
    """Return the header and the output below it; a header that the output quotes isn't one."""
    end = 0
    while line := _HEADER_LINE.match(text, end):
        end = line.end()
    head, code, running = text[:end], _EXIT_CODE.search(text[:end]), _RUNNING.search(text[:end])
    below = _OUTPUT.match(text, end) if head else None
    return Header(
        text[below.end() :] if below else text,
        int(code[1]) if code else None,
        int(running[1]) if running else None,
    )


def command_line_of(name: str, arguments: Json) -> str | None:
    """Return the command line: of `["bash", "-lc", LINE]` the line, which the shell reads."""
    words_of = mapping_or_empty(arguments).get("command", mapping_or_empty(arguments).get("cmd"))
    match words_of:
        case [str(program), *_, str(flag), str(line)] if _POWERSHELL.match(program) and flag.lower() in (
            "-command",
            "-c",
        ):
            return line
    return line_of_shell(words_of) or shell_command(name, arguments)


def script_commands(script: str) -> Iterator[str]:
    """Yield the commands that a script of the `exec` tool runs, as far as they are written out in it."""
    for call in _INNER.finditer(script):
        rest = script[call.end() : call.end() + LONGEST_TEXT]
        key = _COMMAND_KEY.search(rest)
        if key is None or "}" in rest[: key.start()]:
            continue
        quote = rest[key.end()]
        text = _TEXTS[quote].match(rest, key.end())
        if text and not (quote == "`" and "${" in text[1]):
            yield _unescape(text[1], quote)


def _unescape(text: str, quote: str) -> str:
    decoded = json_or_none(f'"{text}"'.encode()) if quote == '"' else None
    return decoded if isinstance(decoded, str) else _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    sequence = escape[1]
    if sequence[0] in "ux" and len(sequence) > 1:
        code = int(sequence[1:].strip("{}"), 16)
        return chr(code) if code < 0x110000 else ""
    return "" if sequence.endswith("\n") else _ESCAPED.get(sequence, sequence)


_WRITTEN_ANEW = timedelta(seconds=1)
"""The time in which a copied history is written. A model's first answer takes longer."""


def matches(value: Object) -> bool:
    """Return whether an object is a line of a rollout of Codex."""
    return (
        value.get("type") in ("session_meta", "response_item", "turn_context", "event_msg")
        and "payload" in value
    )


def parse(file: IO[bytes], problems: Problems, reduce: Reduce = keep_whole) -> Iterator[Session]:
    """Yield the file's session; a continued one has the id of its first part."""
    items, forked, history = _Items(reduce), set[str](), _History()
    events = items.events
    id = model = ""
    reported = 0
    """Events whose turns have their usage, which comes after them."""
    for line in read_objects(file, problems):
        kind, payload = line.get("type"), mapping_or_empty(line.get("payload"))
        time = as_timestamp(line.get("timestamp"))
        if history.is_copied(time):
            history.copied = len(events)
        if kind == "session_meta":
            id = id or text_or_none(payload.get("id")) or ""
            forked.update(filter(None, (text_or_none(payload.get("forked_from_id")),)))
            history.begin(payload, time)
        elif kind == "turn_context":
            model = text_or_none(payload.get("model")) or model
        elif kind == "response_item":
            items.add(payload, time)
        elif kind == "event_msg":
            if payload.get("type") == "user_message":
                said = text_or_none(payload.get("message"))
                items.append(Event("message", role="user", text=said, timestamp=time))
            turn_usage = _usage(payload, "last_token_usage")
            if not history.add(_usage(payload, "total_token_usage"), turn_usage, time):
                continue
            turn = next((at for at in range(reported, len(events)) if events[at].role != "user"), None)
            if turn is not None and turn_usage:
                events[turn] = structs.replace(events[turn], usage=turn_usage)
                reported = len(events)
    times = span_of(event.timestamp for event in events)
    origins = (forked | (history.parents if history.copied else set())) - {id}
    trail = Trail(
        forked_from=frozenset(origins),
        root=min(origins, default=id),
        calls=items.calls,
        replayed=history.copied,
    )
    read = make_transcript(events, usage=history.usage)
    return only_session(Session(id, read, model, *times, trail), "Codex")


class _History:
    """The history of another session, with which a fork's or a sub-agent's file begins, and the tokens beyond it.

    It is written again when the session begins, with its old times or with that of the beginning. The count of tokens
    goes on from it, or begins again.
    """

    def __init__(self) -> None:
        self.parents: set[str] = set()
        """The sessions that the first line names as the origin."""
        self.copied = 0
        """The number of copied events."""
        self.usage: Usage | None = None
        """The session's own tokens so far."""
        self._ends: datetime | None = None
        self._own_begun = False
        self._has_history = False
        self._base: Usage | None = None

    def begin(self, about: Object, time: str | None) -> None:
        """Take the line with which a session begins; those of the copied history follow, first its own such line."""
        if self._ends is not None or self._own_begun:
            self._has_history |= about.get("id") in self.parents
            return
        source = mapping_or_empty(mapping_or_empty(about.get("source")).get("subagent"))
        spawned = mapping_or_empty(source.get("thread_spawn"))
        names = (about.get("forked_from_id"), about.get("parent_thread_id"), spawned.get("parent_thread_id"))
        self.parents = {name for name in names if isinstance(name, str)}
        # A spawned agent may begin without any history, and act at once.
        self._has_history = isinstance(about.get("forked_from_id"), str)
        began = parse_time(time or "")
        self._own_begun = not self.parents or began is None
        self._ends = began + _WRITTEN_ANEW if began else None

    def is_copied(self, time: str | None) -> bool:
        """Return whether a line with this time is of the copied history: nothing after the first own line is."""
        moment = parse_time(time or "")
        if moment and self._ends and moment > self._ends:
            self._own_begun = True
        return self._has_history and not self._own_begun and self._ends is not None

    def add(self, total: Usage | None, last: Usage | None, time: str | None) -> bool:
        """Take the tokens of the session and of its last turn; return whether the turn is its own."""
        if total is None:
            return not self.is_copied(time)
        if self.is_copied(time):
            self._base = total
            return False
        if self._base is None:
            self._base = _subtract(total, last) if self.parents and last else Usage()
        if total.input < self._base.input:
            self._base = Usage()
        self.usage = _subtract(total, self._base)
        return True


def _subtract(total: Usage, part: Usage) -> Usage:
    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    return Usage(**{name: max(0, getattr(total, name) - getattr(part, name)) for name in names})


class _Items:
    """Turns response items into events; remembers the processes that still run and the scripts."""

    def __init__(self, reduce: Reduce) -> None:
        self.events: list[Event] = []
        self.calls: dict[int, tuple[str, ...]] = {}
        """What is the same in a fork, whose lines have times of their own: the call and its count so far."""
        self._counts: Counter[str] = Counter()
        self._reduce = reduce
        self._running: dict[int, int] = {}
        """The index of the result of each running process's command, by its session id."""
        self._reads: dict[str, int] = {}
        """The process that a call of `write_stdin` asks, by the call's id."""
        self._inner: dict[str, int] = {}
        """The number of commands in a script, by the id of its call."""

    def append(self, event: Event) -> None:
        """Add an event, reduced to what is kept."""
        if event.type == "tool_call":
            key = content_key(event)
            self._counts[key] += 1
            self.calls[len(self.events)] = (hash_stably(key, self._counts[key]),)
        self.events.append(self._reduce(event))

    def add(self, item: Object, time: str | None) -> None:
        """Add the events of a response item."""
        kind, id = text_or_none(item.get("type")) or "", text_or_none(item.get("call_id"))
        if kind == "message":
            # A person's message comes as an event too; the user's items also hold Codex's own context.
            if item.get("role") == "assistant":
                text = text_of_message(item.get("content"))
                self.append(Event("message", role="assistant", text=text, timestamp=time))
        elif kind == "reasoning":
            summary = text_of_message(item.get("summary")) or None
            self.append(Event("model_step", name=kind, text=summary, timestamp=time))
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            self._add_call(item, kind, id, time)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._add_result(item.get("output"), id, time)

    def _add_call(self, item: Object, kind: str, id: str | None, time: str | None) -> None:
        name = text_or_none(item.get("name")) or ("shell" if kind == "local_shell_call" else kind)
        arguments: Json = item.get("action", item.get("arguments", item.get("input")))
        if isinstance(arguments, str) and arguments[:1] == "{":
            arguments = json_or_none(arguments.encode())
        inner = list(script_commands(arguments)) if name == "exec" and isinstance(arguments, str) else []
        if id and inner:
            self._inner[id] = len(inner)
            for n, line in enumerate(inner):
                self.append(
                    Event("tool_call", _inner_id(id, n), "exec_command", line, {"cmd": line}, timestamp=time)
                )
            return
        process = mapping_or_empty(arguments).get("session_id") if name == "write_stdin" else None
        if id and isinstance(process, int):
            self._reads[id] = process
        self.append(Event("tool_call", id, name, command_line_of(name, arguments), arguments, timestamp=time))

    def _add_result(self, output: Json, id: str | None, time: str | None) -> None:
        result, process = _result(output, id, time)
        if count := self._inner.get(id or ""):
            # Add a result for each command of a script; what several printed can't be told apart.
            for n in range(count):
                command_result = structs.replace(result, id=_inner_id(result.id or "", n), exit_code=None)
                self.append(command_result if count == 1 else structs.replace(command_result, output=None))
            return
        self.append(result)
        asked = self._reads.get(id or "")
        if asked is not None:
            self._continue(asked, result, is_running=process is not None)
        elif process is not None:
            self._running[process] = len(self.events) - 1

    def _continue(self, process: int, later: Event, *, is_running: bool) -> None:
        """Give a command that outlived its first reply what a later one says."""
        at = self._running.get(process)
        if at is None or later.not_run:
            return
        first = self.events[at]
        parts = (each.output for each in (first, later))
        output = "\n".join(part.rstrip("\n") for part in parts if isinstance(part, str) and part.strip())
        self.events[at] = self._reduce(structs.replace(first, output=output, exit_code=later.exit_code))
        if not is_running:
            del self._running[process]


def _inner_id(id: str, n: int) -> str:
    return f"{id}/{n}"


def _result(output: Json, id: str | None, time: str | None) -> tuple[Event, int | None]:
    """Return a result, and the process that still runs.

    It is JSON with metadata in older rollouts, else text with the exit code in its header.
    """
    decoded = json_or_none(output.encode()) if isinstance(output, str) and output[:1] == "{" else output
    if isinstance(decoded, dict) and "output" in decoded:
        code = int_or_none(mapping_or_empty(decoded.get("metadata")).get("exit_code"))
        return Event("tool_result", id, output=decoded["output"], exit_code=code, timestamp=time), None
    header = read_header(text_of_message(output))
    # A command's own output follows a header.
    not_run = find_refusal(header.output, CODEX) if header.output == text_of_message(output) else ""
    result = Event(
        "tool_result", id, output=header.output, exit_code=header.exit_code, timestamp=time, not_run=not_run
    )
    return result, header.session


def _usage(payload: Object, which: str) -> Usage | None:
    total = mapping_or_empty(mapping_or_empty(payload.get("info")).get(which))
    if payload.get("type") != "token_count" or not total:
        return None
    return read_codex_usage(total)

"""The chat history of aider (`.aider.chat.history.md`): messages, and commands that it ran or was denied.

aider writes neither what commands printed nor their exit codes there, so their ends are unknown. It rounds tokens
from 1,000 on, and costs. Blocks of lines that begin with `> ` are aider's own notes; their first line and every
later note end in two spaces, which distinguishes them from a quote in the model's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from evaluators.model import Event, Transcript, Usage, plausible_cost, total_usage
from evaluators.transcripts.reading import UnreadableTranscript, as_text
from evaluators.transcripts.stream import make_transcript

START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)[ \t]*$", re.MULTILINE)
"""The first line of every chat in a file; the time is that of the machine, without its zone."""
_MODEL = re.compile(r"(?:Main model|Model): (\S+)")
_TOKENS = re.compile(
    r"Tokens: (?P<input>[\d.,]+k?) sent(?:, (?P<write>[\d.,]+k?) cache write)?"
    r"(?:, (?P<hit>[\d.,]+k?) cache hit)?, (?P<output>[\d.,]+k?) received\."
)
# Versions of 2024 say "request".
_COST = re.compile(r"Cost: \$(\d+\.\d+) (?:message|request),")
_QUESTION = re.compile(r"Run shell commands?\? .*: (?P<answer>\S*)\Z")
_RUNNING = "Running "
_NAME = "shell"


@dataclass
class _Chat:
    """One chat while its lines are read."""

    started: str
    events: list[Event] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    model: str = ""
    first: str = ""
    """What the person said first."""
    said: list[str] = field(default_factory=list)
    """Lines of the model's answer that is being read."""
    asked: list[str] = field(default_factory=list)
    """The lines of a block of notes since the last one that stands for itself: the commands that a question is about."""
    in_notes: bool = False
    may_run: bool = False
    """Whether the commands of this block of notes were allowed."""


@dataclass(frozen=True)
class AiderChat:
    """A chat: its id is the same when it went on."""

    id: str
    started: str
    model: str
    transcript: Transcript


def parse(raw: bytes) -> Transcript:
    """Return all chats of a history as one transcript. Raises `UnreadableTranscript`."""
    chats = read_chats(as_text(raw))
    if not chats:
        raise UnreadableTranscript(
            "The output isn't a chat history of aider. Print it after aider: `cat .aider.chat.history.md`."
        )
    costs = [chat.transcript.cost_usd for chat in chats if chat.transcript.cost_usd is not None]
    return make_transcript(
        (event for chat in chats for event in chat.transcript.events),
        usage=total_usage(chat.transcript.usage for chat in chats),
        cost_usd=sum(costs) if costs else None,
    )


def read_chats(text: str) -> list[AiderChat]:
    """Return the chats of a history in which somebody said something."""
    starts = list(START.finditer(text))
    ends = [*(each.start() for each in starts), len(text)][1:]
    chats = [
        _read(f"{start[1]}T{start[2]}", text[start.end() : end])
        for start, end in zip(starts, ends, strict=True)
    ]
    return [_finished(chat) for chat in chats if chat.events]


def _finished(chat: _Chat) -> AiderChat:
    usage = total_usage(chat.usages)
    known = {chat.model: usage} if chat.model and usage else {}
    # It writes 0.00 where it knows no price.
    cost = plausible_cost(sum(chat.costs)) if any(chat.costs) else None
    id = sha256(f"{chat.started}\n{chat.first}".encode()).hexdigest()[:32]
    read = make_transcript(chat.events, usage=usage, usage_by_model=known, cost_usd=cost)
    return AiderChat(id, chat.started, chat.model, read)


def _read(started: str, text: str) -> _Chat:
    chat = _Chat(started)
    for line in text.splitlines():
        if line.startswith("#### ") and line.endswith("  "):
            _end_answer(chat)
            said = line[5:].strip()
            # Add a line that a person wrote; further lines of the same message are further events.
            chat.in_notes = chat.may_run = False
            # How a person lets aider run a command.
            command = next(
                (
                    said.removeprefix(prefix).strip()
                    for prefix in ("/run ", "/test ", "!")
                    if said.startswith(prefix)
                ),
                "",
            )
            if command:
                chat.events += _call(len(chat.events), command, ran=True)
            elif said and not said.startswith("/"):
                chat.first = chat.first or said
                chat.events.append(Event("message", role="user", text=said))
        elif line.startswith("> ") and (
            chat.in_notes or (line.endswith("  ") or _TOKENS.fullmatch(line[2:]) is not None)
        ):
            _end_answer(chat)
            chat.in_notes = True
            _read_note(chat, line[2:].strip())
        elif not line.strip() and chat.in_notes:
            chat.in_notes = chat.may_run = False
            chat.asked = []
        elif chat.in_notes:
            _read_note(chat, line.strip())
        else:
            chat.said.append(line)
    _end_answer(chat)
    return chat


def _end_answer(chat: _Chat) -> None:
    said = "\n".join(chat.said).strip()
    chat.said = []
    if said:
        chat.events.append(Event("message", role="assistant", text=said))


def _read_note(chat: _Chat, note: str) -> None:
    if match := _TOKENS.match(note):
        chat.usages.append(_usage(match))
        chat.asked = []
    elif match := _QUESTION.match(note):
        chat.may_run = match["answer"].lower() in ("y", "yes", "a", "all")
        if not chat.may_run:
            for command in _commands(chat.asked):
                chat.events += _call(len(chat.events), command, ran=False)
        chat.asked = []
    elif note.startswith(_RUNNING) and chat.may_run:
        chat.events += _call(len(chat.events), note.removeprefix(_RUNNING), ran=True)
    elif match := _MODEL.match(note):
        chat.model = chat.model or match[1]
    elif not note.startswith("Please answer with one of"):
        chat.asked.append(note)
    if match := _COST.search(note):
        chat.costs.append(float(match[1]))


def _commands(lines: Iterable[str]) -> Iterator[str]:
    """Yield the commands of a proposal, as aider would run them: each line, without comments."""
    return (line for line in lines if line and not line.startswith("#"))


def _call(number: int, command: str, *, ran: bool) -> tuple[Event, Event]:
    """Return a call with its result, which says no more than whether it ran."""
    id = f"call-{number}"
    call = Event("tool_call", id, _NAME, command=command, input={"command": command})
    return call, Event("tool_result", id, _NAME, not_run="" if ran else "rejected")


def _usage(match: re.Match[str]) -> Usage:
    """Return the tokens of a message; what the cache has is part of what was sent. Rounded ones are estimates."""
    parts = {name: _count(match[name] or "0") for name in ("input", "output", "hit", "write")}
    return Usage(
        parts["input"],
        parts["output"],
        estimated=any((text or "").endswith("k") for text in match.groups()),
        cache_read=parts["hit"],
        cache_write=parts["write"],
    )


def _count(text: str) -> int:
    """Return a number of tokens such as `20`, `1,234` or `1.5k`."""
    try:
        return round(float(text.removesuffix("k").replace(",", "")) * (1000 if text.endswith("k") else 1))
    except (ValueError, OverflowError):
        return 0

"""How far guidance got in a trial: delivered, in the agent's context, opened, quoted."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct

from evalhub.lib.limits import LONGEST_TRANSCRIPT
from evaluators.model import Event, Json, Transcript
from evaluators.tool_use.attempts import call_message
from evaluators.tool_use.calls import SKILL_MARK, Call, pair_calls
from evaluators.tool_use.shell import split_commands

LEVELS = ("delivered", "in_context", "opened", "quoted")
"""From the weakest evidence to the strongest; none implies another."""
CHARACTERS_A_TOKEN = 4
MOST_QUOTES = 50
SHORTEST_LINE, FEWEST_WORDS = 24, 4
"""A line of prose is distinctive from this length on."""
_READERS = frozenset(
    ["awk", "bat", "batcat", "cat", "grep", "head", "less", "more", "nl", "rg", "sed", "tail", "view"]
)
_READ = re.compile(r"read|view|open|cat|fetch|get_file", re.IGNORECASE)
_SKILL_TOOLS = ("skill", "activate_skill")
"""Tools that load a skill by its name; the second is Gemini CLI's."""
_SPAN = re.compile(r"`([^`\n]+)`")
_PLACEHOLDER = re.compile(r"<|\[|\$|\{|\b[A-Z][A-Z_]+\b")
_MARKS = re.compile(r"^[\s>#*+-]*(?:\d+[.)]\s+)?|[*_`]")
_FENCE = re.compile(r"^\s*(```|~~~)")
_BLANKS = re.compile(r"\s+")


class ExposedDocument(Struct, frozen=True):
    """A guidance document by its path in the workspace."""

    path: str
    text: str


class Quote(Struct, frozen=True):
    """A line of a document that the agent repeated."""

    path: str
    line: int
    """Counted from 1."""
    event: int
    """Index of the transcript's event."""


class Exposure(Struct, frozen=True):
    """How far a run's guidance got in one trial."""

    delivered: bool
    in_context: bool | None
    """None if the agent's rule is unknown."""
    opened: bool
    quoted: bool
    opened_paths: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    laid_as: tuple[str, ...] = ()
    """Paths of copies under the name that the agent reads."""
    tokens: int = 0
    """Estimated from the number of characters."""
    why: str = ""
    """Why it was not delivered, in a sentence."""


def quoted_events(exposure: Mapping[str, Any] | None) -> tuple[int, ...]:
    """Return the events in which the agent repeated the guidance, from an exposure as JSON; none without one."""
    return tuple(quote["event"] for quote in (exposure or {}).get("quotes", ()))


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text: a quarter of its characters."""
    return -(-len(text) // CHARACTERS_A_TOKEN)


def opened_paths(paths: Sequence[str], transcript: Transcript) -> tuple[str, ...]:
    """Return the paths that the agent read with a tool, printed with a command or called as a skill.

    A tool's call that failed opened nothing.
    """
    read_paths = {path for call in pair_calls(transcript.events) for path in paths if _opens(call, path)}
    return tuple(path for path in paths if path in read_paths)


def find_failed_loads(path: str, transcript: Transcript) -> tuple[str, ...]:
    """Return what the agent's program said of its calls of a skill that failed: the skill could not be read."""
    return tuple(
        call_message(call).strip()
        for call in pair_calls(transcript.events)
        if call.exit_code and not call.not_run and _names_skill(call.event, path)
    )


def find_quoted_lines(
    documents: Sequence[ExposedDocument], transcript: Transcript, prompt: str = ""
) -> tuple[Quote, ...]:
    """Return the distinctive lines that occur in the agent's messages or commands, each once.

    A line of prose counts as a whole; of code, the part before its first placeholder. What the task's prompt says
    is not distinctive.
    """
    spoken = [(index, text) for index, event in enumerate(transcript.events) if (text := _own_text(event))]
    starts = [0, *accumulate(len(text) + 1 for _, text in spoken)]
    whole, asked = "\n".join(text for _, text in spoken)[:LONGEST_TRANSCRIPT], _plain(prompt)
    all_quotes = []
    for document in documents:
        for line, phrases in _distinctive(document.text):
            places = (_find(whole, phrase) for phrase in phrases if _find(asked, phrase) < 0)
            at = next((place for place in places if place >= 0), None)
            if at is not None:
                all_quotes.append(Quote(document.path, line, spoken[bisect_right(starts, at) - 1][0]))
    return tuple(all_quotes[:MOST_QUOTES])


def _opens(call: Call, path: str) -> bool:
    event = call.event
    if (skill := event.metadata.get(SKILL_MARK)) and (event.command is not None or _has_worked(call)):
        file = PurePosixPath(path)
        if (file.name, file.parent.name) == ("SKILL.md", skill):
            return True
    if event.command is not None:
        return any(
            PurePosixPath(part.words[0]).name in _READERS
            and any(_is_path(word, path) for word in part.words[1:])
            for part in split_commands(event.command)
            if part.words
        )
    if not _has_worked(call):
        return False
    words, name = list(_texts(event.input)), event.name or ""
    if name.lower() in _SKILL_TOOLS:
        return _names_skill(event, path)
    return bool(_READ.search(name)) and any(_is_path(word, path) for word in words)


def _has_worked(call: Call) -> bool:
    return not (call.not_run or call.exit_code)


def _names_skill(event: Event, path: str) -> bool:
    """Return whether a call loads the skill with this SKILL.md by its name."""
    file = PurePosixPath(path)
    if (event.name or "").lower() not in _SKILL_TOOLS or file.name != "SKILL.md":
        return False
    return any(word.rpartition(":")[2].strip("/") == file.parent.name for word in _texts(event.input))


def _is_path(word: str, path: str) -> bool:
    plain = word.removeprefix("./")
    return plain == path or plain.endswith(f"/{path}")


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _texts(member)


def _own_text(event: Event) -> str:
    """Return what the agent said or ran in an event; empty for what it was told."""
    if event.type == "tool_call":
        return _plain(event.command or "")
    if event.type in ("message", "model_step") and event.role in (None, "assistant"):
        return _plain(event.text or "")
    return ""


def _plain(text: str) -> str:
    return _BLANKS.sub(" ", text.replace("`", "").replace("*", "")).strip()


def _distinctive(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the number of each distinctive line with its phrases."""
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if _FENCE.match(line):
            is_code = not is_code
            continue
        codes = [line] if is_code else _SPAN.findall(line)
        phrases = [phrase for code in codes if (phrase := _command(code))]
        prose = _plain(_MARKS.sub("", line)).rstrip(".,:;!")
        if not is_code and len(prose) >= SHORTEST_LINE and prose.count(" ") >= FEWEST_WORDS - 1:
            phrases.append(prose)
        if phrases:
            yield number, tuple(phrases)


def _command(code: str) -> str:
    """Return the fixed beginning of a command; empty if too little of it is fixed."""
    fixed = _plain(_PLACEHOLDER.split(code, maxsplit=1)[0])
    # The shortest fixed beginning of a command that counts; it has at least two words.
    return fixed if len(fixed) >= 8 and " " in fixed else ""


def _find(text: str, phrase: str) -> int:
    """Return where a phrase occurs as whole words, -1 if nowhere."""
    at = text.find(phrase)
    while at >= 0:
        end = at + len(phrase)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            return at
        at = text.find(phrase, at + 1)
    return -1

"""Sessions of aider: each chat of a chat history (`.aider.chat.history.md`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from evalhub.lib.limits import LARGEST_RECORD
from evaluators.transcripts.aider import START, read_chats
from evaluators.transcripts.reading import as_text
from evaluators.transcripts.sessions.session import Problems, Reduce, Session, UnreadableSession, keep_whole


def begins_chat_history(head: bytes) -> bool:
    """Return whether a file begins like a chat history of aider."""
    return START.match(as_text(head).lstrip()) is not None


def parse(file: IO[bytes], problems: Problems, reduce: Reduce = keep_whole) -> Iterator[Session]:
    """Yield a session for each chat. aider writes only when a chat began, in the time of its machine."""
    content = file.read(LARGEST_RECORD + 1)
    if len(content) > LARGEST_RECORD:
        raise UnreadableSession(f"The file is larger than {LARGEST_RECORD >> 20} MB. Split it between chats.")
    chats = read_chats(as_text(content))
    if not chats:
        raise UnreadableSession("No messages of an aider session found.")
    for chat in chats:
        yield Session(chat.id, chat.transcript, chat.model, chat.started)

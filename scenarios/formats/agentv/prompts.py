"""The prompts that the messages of a case come to: with files written into them, or with files named."""

from __future__ import annotations

from collections.abc import Sequence

from evaluators.model import Json
from scenarios.formats.agentv.messages import Segment, Turn

_ROLES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


def prompt(turns: Sequence[Turn], *, embed: bool) -> str:
    """Return messages as one text; `embed` writes the content of files into it, else they are named.

    A single message stands alone, several are told apart by their roles. Guidelines are left out: they are
    the run's, not the question's.
    """
    marked = _is_conversation(turns)
    shown = [(turn.role, _turn_text(turn, embed=embed, marked=marked)) for turn in turns]
    if not marked:
        return "\n\n".join(text for _, text in shown if text)
    return "\n\n".join(f"@[{_ROLES[role]}]:\n{text}" for role, text in shown if text)


def chat(turns: Sequence[Turn]) -> tuple[Json, ...]:
    """Return a conversation as role and text of each message, nothing for a question that stands alone."""
    if not _is_conversation(turns):
        return ()
    shown = [(turn.role, _turn_text(turn, embed=True, marked=False)) for turn in turns]
    return tuple({"role": role, "content": text} for role, text in shown if text)


def text_of(turn: Turn) -> str:
    """Return a message as text, with its files as their content alone."""
    return "\n\n".join(segment.text.strip() for segment in turn.segments if segment.text.strip())


def _is_conversation(turns: Sequence[Turn]) -> bool:
    visible = [turn for turn in turns if any(not segment.guideline for segment in turn.segments)]
    return len(visible) > 1 or any(turn.role in ("assistant", "tool") for turn in turns)


def _turn_text(turn: Turn, *, embed: bool, marked: bool) -> str:
    texts = (_segment_text(segment, embed=embed, marked=marked) for segment in turn.segments)
    return "\n\n".join(text for text in texts if text)


def _segment_text(segment: Segment, *, embed: bool, marked: bool) -> str:
    if not segment.path:
        return segment.text
    if segment.guideline:
        return f"<Attached: {segment.shown}>" if marked else ""
    if embed and segment.text:
        return f'<file path="{segment.shown}">\n{segment.text.strip()}\n</file>'
    return f'<file: path="{segment.shown}">'

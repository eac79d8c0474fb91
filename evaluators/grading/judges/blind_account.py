"""What a judge sees of a trial without seeing whether a skill was there: answer, changed files, the tool's commands."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaluators.grading.evidence import Evidence
from evaluators.grading.judges.transcript_text import (
    MAX_CHARACTERS,
    MAX_EVENT_CHARACTERS,
    cut_middle,
    escape_commands,
)
from evaluators.model import FileUnavailable
from evaluators.redaction import redact_patterns
from evaluators.tool_use.not_started import find_not_started

MEANING = (
    "It is the account of one trial: the commands of the tool, each after a $, with how it ended; the files that the"
    " agent changed; and its answer. A line that begins with \\$ was written, not run."
    " […] stands for what is left out on purpose: draw no conclusion from it."
)
"""What a prompt says of an account."""
LEFT_OUT = "[…]"
_SKILL = re.compile(r"""[^\s'"`()<>]*\bskills/[^\s'"`()<>]*|\bSKILL\.md\b""")
"""A path in a folder of skills, or a skill's document."""


def blind_account(evidence: Evidence) -> str:
    """Return a trial's account as text, redacted and of limited length, with each path of a skill left out."""
    parts = (
        "Commands of the tool:\n" + ("\n".join(_commands(evidence)) or "none was seen"),
        "Changed files:\n" + ("\n".join(_files(evidence)) or "none"),
        "Answer:\n" + (escape_commands(evidence.answer) or "none"),
    )
    return cut_middle(redact_patterns("\n\n".join(map(hide_skills, parts))), MAX_CHARACTERS)


def hide_skills(text: str) -> str:
    """Return a text without paths of skills."""
    return _SKILL.sub(LEFT_OUT, text)


def _commands(evidence: Evidence) -> Iterator[str]:
    """Yield the tool's commands with their ends; without a known tool, all commands but those about skills."""
    if evidence.tool is not None:
        if missing := find_not_started(evidence.transcript, evidence.tool, evidence.interaction):
            yield f"no call started: {missing.first}"
            return
        for command in evidence.interaction.commands:
            yield _line(command.line, command.exit_code, failed=command.failed)
        return
    ends = {each.id: each for each in evidence.transcript.events if each.type == "tool_result" and each.id}
    for event in evidence.transcript.events:
        if event.type == "tool_call" and event.command is not None and not _SKILL.search(event.command):
            end = ends.get(event.id or "")
            yield _line(
                event.command, end.exit_code if end else None, failed=bool(end and end.success is False)
            )


def _line(command: str, exit_code: int | None, *, failed: bool) -> str:
    escaped = escape_commands(command)
    if exit_code is None:
        return f"$ {escaped} [{'failed' if failed else 'unknown end'}]"
    return f"$ {escaped} [exit {exit_code}]"


def _files(evidence: Evidence) -> Iterator[str]:
    """Yield the changed files with their texts, as far as they can be read."""
    for path in evidence.changed_files:
        if _SKILL.search(path):
            continue
        try:
            text = evidence.workspace.read(path) if evidence.workspace else ""
        except FileUnavailable:
            text = ""
        yield f"{path}\n{escape_commands(cut_middle(text, MAX_EVENT_CHARACTERS))}" if text else path

"""Describe an import of sessions: as lines for the command line, as a document for REST."""

from __future__ import annotations

from typing import Any

from evalhub.lib.numbers import format_count
from evaluators.model import Command
from evaluators.transcripts.sessions.kept import KeptSession
from runs.exchange.imports.import_sessions import SortedSessions
from runs.exchange.imports.session_files import ReadSessions
from runs.models import Run


def session_lines(
    sorted_sessions: SortedSessions, read: ReadSessions, run: Run | None, *, shows_commands: bool
) -> list[str]:
    """Return what was imported or would be, and what could not be read."""
    lines: list[str] = []
    if shows_commands:
        lines += [line for session in sorted_sessions.to_store for line in _kept_lines(session)]
    where = f"run {run.pk}: " if run else ""
    counts = [f"{len(sorted_sessions.new)} new"]
    counts += [
        f"{n} {word}"
        for n, word in (
            (len(sorted_sessions.continued), "continued"),
            (sorted_sessions.known, "already imported"),
        )
        if n
    ]
    counts += [f"{read.without} without the tool"] if read.without else []
    counts += [mentions_text(read.mentions)] if read.mentions else []
    lines.append(f"{where}{format_count(len(sorted_sessions.to_store), 'session')} ({', '.join(counts)})")
    return [*lines, *(f"! {each}" for each in read.problems)]


def mentions_text(mentions: int) -> str:
    """Return how often sessions without the tool mention it."""
    verb = "mentions" if mentions == 1 else "mention"
    return f"where {format_count(mentions, 'command')} {verb} it"


def _kept_lines(session: KeptSession) -> list[str]:
    head = f"{session.agent} {session.id} {session.started}".rstrip()
    notes = f", {session.not_run} not run" if session.not_run else ""
    notes += f", {session.mentioned} mentioned, not counted" if session.mentioned else ""
    notes += ", whole transcript redacted" if session.is_whole else ""
    errors = session.errors
    rows = [
        f"  {_show_exit_code(command):>3} {command.line}"
        + (f"  # {errors[command.n]}" if errors.get(command.n) else "")
        for command in session.commands
    ]
    return [
        f"{head} ({format_count(len(session.commands), 'command')}, {session.failed} failed{notes})",
        *rows,
    ]


def _show_exit_code(command: Command) -> str:
    """Return a command's exit code, `?` if its end is unknown, with `~` if it is estimated."""
    if command.exit_code is None:
        return "~!" if command.failed else "?"
    return f"~{command.exit_code}" if command.end == "estimated" else str(command.exit_code)


def sessions_document(sorted_sessions: SortedSessions, read: ReadSessions, run: Run | None) -> dict[str, Any]:
    """Return the import as JSON, with what is kept of each session."""
    return {
        "run": run.pk if run else None,
        "new": len(sorted_sessions.new),
        "continued": len(sorted_sessions.continued),
        "known": sorted_sessions.known,
        "without_tool": read.without,
        "mentions_without_tool": read.mentions,
        "problems": read.problems,
        "sessions": [_session(each) for each in sorted_sessions.to_store],
    }


def _session(session: KeptSession) -> dict[str, Any]:
    errors = session.errors
    return {
        "id": session.id,
        "agent": session.agent,
        "file": session.file,
        "model": session.model,
        "started": session.started or None,
        "finished": session.finished or None,
        "whole_transcript": session.is_whole,
        "not_run": session.not_run,
        "mentioned": session.mentioned,
        "commands": [
            {
                "line": command.line,
                "exit_code": command.exit_code,
                "failed": command.failed,
                "end": command.end,
                "error": errors.get(command.n, ""),
            }
            for command in session.commands
        ],
    }

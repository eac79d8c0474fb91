"""Import people's sessions."""

from __future__ import annotations

from typing import Any

from ninja import File, Form, Router, Schema, Status, UploadedFile

from evalhub.lib.storable_text import Text
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import ApiError, declare_answers
from runs.exchange.exports.sessions import sessions_document
from runs.exchange.imports.import_sessions import counted_once, session_tool, sort_sessions, store_sessions
from runs.exchange.imports.session_files import read_uploads
from scenarios.archives import MAX_ARCHIVE_BYTES

router = Router(tags=["results"])


class KeptCommandOut(Schema):
    line: str
    """Redacted."""
    exit_code: int | None
    """Null if unknown."""
    failed: bool
    end: str
    """How its end is known: reported, estimated or unknown."""
    error: str
    """The first error line, redacted; empty if it did not fail."""


class KeptSessionOut(Schema):
    """What is kept of a session."""

    id: str
    agent: str
    file: str
    model: str
    started: str | None
    finished: str | None
    whole_transcript: bool
    not_run: int
    """Calls of the tool that never ran, such as denied ones."""
    mentioned: int
    """Shell commands that name the tool and were not counted."""
    commands: list[KeptCommandOut]


class ImportedSessionsOut(Schema):
    """An import of sessions, or what it would store."""

    run: int | None
    """Null for a dry run, and if nothing is new."""
    new: int
    continued: int
    """Imported before and longer now; they replace what was stored."""
    known: int
    """Already imported."""
    without_tool: int
    """Sessions that never called the tool; nothing of them is kept."""
    mentions_without_tool: int
    """Their shell commands that name the tool."""
    problems: list[str]
    sessions: list[KeptSessionOut]


class SessionsIn(Schema):
    tool: Text
    """The program whose commands are kept."""
    pattern: Text = ""
    """A regular expression that finds its commands."""
    keep_transcript: bool = False
    """Keep whole transcripts, redacted."""
    dry_run: bool = False
    """Store nothing."""


@router.post("/sessions", auth=Bearer("upload"), response=declare_answers(ImportedSessionsOut, status=201))
def create_sessions(
    request: ApiRequest, file: File[list[UploadedFile]], form: Form[SessionsIn]
) -> Status[dict[str, Any]]:
    """Import people's sessions with Claude Code, Codex, opencode and other agents as one run.

    Only the tool's commands, their exit codes, first error lines and times are kept, redacted. A session is stored once.
    """
    if sum(each.size or 0 for each in file) > MAX_ARCHIVE_BYTES:
        raise ApiError(
            413,
            f"The upload is larger than {MAX_ARCHIVE_BYTES >> 20} MB. Split the sessions into several uploads.",
            id="api/too-large",
        )
    project, tool = request.access.project, session_tool(form.tool, form.pattern)
    files = [(str(each.name), each.file) for each in file if each.file is not None]
    read = read_uploads(files, tool, whole=form.keep_transcript)
    counted_once(read, project, tool)
    if form.dry_run:
        sorted_sessions, run = sort_sessions(project, tool, read.sessions), None
    else:
        run, sorted_sessions = store_sessions(
            project, tool, read.sessions, read.problems, by=request.access.user
        )
    return Status(201, sessions_document(sorted_sessions, read, run))

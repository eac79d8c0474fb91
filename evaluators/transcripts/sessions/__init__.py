"""Sessions that agents recorded while people worked with them.

To read another agent's files, write a module with `matches` and `parse` and add a line to `IMPORTERS`; see
docs/extending.md.
"""

from evaluators.transcripts.sessions import claude_code, codex, opencode, otel
from evaluators.transcripts.sessions.session import (
    Problems,
    Session,
    SessionImporter,
    UnreadableSession,
    parse_session_file,
)

IMPORTERS = (
    SessionImporter("Claude Code", claude_code.matches, claude_code.parse),
    SessionImporter("Codex", codex.matches, codex.parse),
    SessionImporter("opencode", opencode.matches, opencode.parse),
    SessionImporter("OpenTelemetry", otel.matches, otel.parse),
)
"""The known agents; the first that matches a file reads it."""

__all__ = ["IMPORTERS", "Problems", "Session", "SessionImporter", "UnreadableSession", "parse_session_file"]

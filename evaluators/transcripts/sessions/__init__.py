"""Sessions that agents recorded while people worked with them.

To read another agent's files, write a module with `matches` and `parse` and add a line to `IMPORTERS`; see
docs/extending.md.
"""

from evaluators.transcripts.sessions import claude_code, codex, opencode, otel
from evaluators.transcripts.sessions.session import (
    Importer,
    Problems,
    Session,
    UnreadableSession,
    parse_session_file,
)

IMPORTERS = (
    Importer("Claude Code", claude_code.matches, claude_code.parse),
    Importer("Codex", codex.matches, codex.parse),
    Importer("opencode", opencode.matches, opencode.parse),
    Importer("OpenTelemetry", otel.matches, otel.parse),
)
"""The known agents; the first that matches a file reads it."""

__all__ = ["IMPORTERS", "Importer", "Problems", "Session", "UnreadableSession", "parse_session_file"]

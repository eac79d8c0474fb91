"""Sessions that agents recorded while people worked with them.

To read another agent's files, write a module with `matches` and `parse` and add a line to `IMPORTERS`; see
docs/extending.md.
"""

from evaluators.transcripts import inspect_log
from evaluators.transcripts.sessions import (
    aider,
    claude_code,
    codex,
    copilot_cli,
    gemini_cli,
    opencode,
    otel,
    qwen_code,
    trajectories,
)
from evaluators.transcripts.sessions.session import (
    Problems,
    Session,
    SessionImporter,
    UnreadableSession,
    parse_session_file,
)

IMPORTERS = (
    SessionImporter("Gemini CLI", gemini_cli.matches, gemini_cli.parse),
    SessionImporter("Qwen Code", qwen_code.matches, qwen_code.parse),
    SessionImporter("Copilot CLI", copilot_cli.matches, copilot_cli.parse),
    SessionImporter("mini-swe-agent", trajectories.matches_mini, trajectories.parse_mini),
    SessionImporter("ATIF", trajectories.matches_atif, trajectories.parse_atif),
    SessionImporter(
        "Inspect", trajectories.matches_inspect, trajectories.parse_inspect, inspect_log.is_inspect_archive
    ),
    SessionImporter("aider", lambda value: False, aider.parse, aider.begins_chat_history),
    SessionImporter("Claude Code", claude_code.matches, claude_code.parse),
    SessionImporter("Codex", codex.matches, codex.parse),
    SessionImporter("opencode", opencode.matches, opencode.parse),
    SessionImporter("OpenTelemetry", otel.matches, otel.parse),
)
"""The known agents; the first that matches a file reads it, so those with the narrowest marks are first."""

__all__ = ["IMPORTERS", "Problems", "Session", "SessionImporter", "UnreadableSession", "parse_session_file"]

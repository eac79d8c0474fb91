"""The Claude Code command line."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from runs.providers.options import Options


class ClaudeCodeOptions(Options):
    """How Claude Code is started."""

    executable: str = Field(
        default="claude", min_length=1, validation_alias=AliasChoices("executable", "command", "binary")
    )
    max_turns: int | None = Field(default=None, gt=0)

"""The Codex command line."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, Field

from runs.providers.options import Options


class CodexOptions(Options):
    """How Codex is started."""

    executable: str = Field(
        default="codex", min_length=1, validation_alias=AliasChoices("executable", "command", "binary")
    )
    cwd: str | None = None
    log_dir: str | None = Field(default=None, validation_alias=AliasChoices("log_dir", "log_directory"))
    log_format: Literal["summary", "json"] | None = Field(
        default=None, validation_alias=AliasChoices("log_format", "log_output_format")
    )

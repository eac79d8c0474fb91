"""The opencode command line."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from runs.providers.options import Options


class OpencodeOptions(Options):
    """How opencode is started."""

    executable: str = Field(
        default="opencode", min_length=1, validation_alias=AliasChoices("executable", "command", "binary")
    )

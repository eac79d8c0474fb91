"""An agent in Visual Studio Code."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from runs.providers.options import Options


class VscodeOptions(Options):
    """How Visual Studio Code is started and whether its answer is waited for."""

    command: str = Field(default="code", min_length=1, validation_alias=AliasChoices("vscode_cmd", "command"))
    workspace_template: str | None = None
    wait_for_response: bool = Field(default=True, validation_alias=AliasChoices("wait", "wait_for_response"))
    dry_run: bool = False
    subagent_root: str | None = None


class VscodeInsidersOptions(VscodeOptions):
    """The Insiders edition, whose command has another name."""

    command: str = Field(
        default="code-insiders", min_length=1, validation_alias=AliasChoices("vscode_cmd", "command")
    )

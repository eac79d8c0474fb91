"""The kinds of targets, and the classes that talk to them: one file per kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pkgutil import resolve_name
from typing import Any

from runs.sandbox.sandbox import Containment
from runs.targets.providers.base import Provider
from runs.targets.providers.options import Options, ResolvedTarget


class ByKind(Mapping[str, Any]):
    """Classes of `runs.targets` by kind, given as `folder.file:class`.

    A run uses one kind or two, and loading all takes a tenth of a command's start.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, kind: str) -> Any:
        return resolve_name(f"runs.targets.{self._places[kind]}")

    def __contains__(self, kind: object) -> bool:
        return kind in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


OPTIONS: Mapping[str, type[Options]] = ByKind(
    {
        "mock": "providers.mock:MockOptions",
        "replay": "providers.replay:ReplayOptions",
        "cli": "agents.cli:CliOptions",
        "http": "language_models.http:HttpOptions",
        "codex": "agents.codex:CodexOptions",
        "claude_code": "agents.claude_code:ClaudeCodeOptions",
        "opencode": "agents.opencode:OpencodeOptions",
        "gemini_cli": "agents.session_agents:GeminiCliOptions",
        "qwen_code": "agents.session_agents:QwenCodeOptions",
        "copilot_cli": "agents.session_agents:CopilotCliOptions",
        "vscode": "agents.vscode:VscodeOptions",
        "vscode-insiders": "agents.vscode:VscodeInsidersOptions",
        "azure": "language_models.litellm:AzureOptions",
        "anthropic": "language_models.litellm:AnthropicOptions",
        "gemini": "language_models.litellm:GeminiOptions",
        "litellm": "language_models.litellm:LitellmOptions",
    }
)
"""Allowed options of a targets file's entry, by kind."""

ALIASES: Mapping[str, str] = {
    "azure-openai": "azure",
    "google": "gemini",
    "google-gemini": "gemini",
    "codex-cli": "codex",
    "claude-code": "claude_code",
    "gemini-cli": "gemini_cli",
    "qwen-code": "qwen_code",
    "copilot-cli": "copilot_cli",
}
"""Other names of a kind."""

MODELS = frozenset(("azure", "anthropic", "gemini", "litellm"))
"""Kinds that answer without calling tools."""

JUDGES = MODELS | {"cli", "mock", "replay"}
"""Kinds that can judge."""

TAKE_MCP = frozenset(
    (
        *("codex", "claude_code", "opencode", "gemini_cli", "qwen_code", "copilot_cli"),
        *("cli", "mock", "replay"),
    )
)
"""Kinds that can be given an MCP server, or that only play back what was said."""

TAKE_STUBS = MODELS | {"mock", "replay"}
"""Kinds whose calls stubs can answer, or that only play back what was said; an `http` endpoint needs a `stubs_field`."""

PROVIDERS: Mapping[str, Callable[[ResolvedTarget, Containment], Provider]] = ByKind(
    {
        "mock": "providers.mock:Mock",
        "replay": "providers.replay:Replay",
        "cli": "agents.cli:Cli",
        "http": "language_models.http:Http",
        "codex": "agents.codex:Codex",
        "claude_code": "agents.claude_code:ClaudeCode",
        "opencode": "agents.opencode:Opencode",
        "gemini_cli": "agents.session_agents:GeminiCli",
        "qwen_code": "agents.session_agents:QwenCode",
        "copilot_cli": "agents.session_agents:CopilotCli",
        "vscode": "agents.vscode:Vscode",
        "vscode-insiders": "agents.vscode:Vscode",
        "azure": "language_models.language_model:LanguageModel",
        "anthropic": "language_models.language_model:LanguageModel",
        "gemini": "language_models.language_model:LanguageModel",
        "litellm": "language_models.language_model:LanguageModel",
    }
)
"""Provider classes by kind."""


def make_provider(target: ResolvedTarget, containment: Containment) -> Provider:
    """Return a target's provider. Raises `ProviderError` for conflicting settings."""
    return PROVIDERS[target.kind](target, containment)

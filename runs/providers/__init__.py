"""What talks to agents and models: one file a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from runs.providers.base import Provider
from runs.providers.claude_code import ClaudeCode, ClaudeCodeOptions
from runs.providers.cli import Cli, CliOptions
from runs.providers.codex import Codex, CodexOptions
from runs.providers.http import Http, HttpOptions
from runs.providers.language_model import LanguageModel
from runs.providers.litellm import AnthropicOptions, AzureOptions, GeminiOptions, LitellmOptions
from runs.providers.mock import Mock, MockOptions
from runs.providers.opencode import Opencode, OpencodeOptions
from runs.providers.options import Options, ResolvedTarget
from runs.providers.replay import Replay, ReplayOptions
from runs.providers.vscode import Vscode, VscodeInsidersOptions, VscodeOptions

if TYPE_CHECKING:  # runs.sandbox imports this package
    from runs.sandbox import Containment

OPTIONS: Mapping[str, type[Options]] = {
    "mock": MockOptions,
    "replay": ReplayOptions,
    "cli": CliOptions,
    "http": HttpOptions,
    "codex": CodexOptions,
    "claude_code": ClaudeCodeOptions,
    "opencode": OpencodeOptions,
    "vscode": VscodeOptions,
    "vscode-insiders": VscodeInsidersOptions,
    "azure": AzureOptions,
    "anthropic": AnthropicOptions,
    "gemini": GeminiOptions,
    "litellm": LitellmOptions,
}
"""What may stand in the entry of a targets file, by kind."""

ALIASES: Mapping[str, str] = {
    "azure-openai": "azure",
    "google": "gemini",
    "google-gemini": "gemini",
    "codex-cli": "codex",
    "claude-code": "claude_code",
}
"""Other names of a kind."""

MODELS = frozenset(("azure", "anthropic", "gemini", "litellm"))
"""Kinds that answer and call no tool themselves."""

PROVIDERS: Mapping[str, Callable[[ResolvedTarget, Containment], Provider]] = {
    "mock": Mock,
    "replay": Replay,
    "cli": Cli,
    "http": Http,
    "codex": Codex,
    "claude_code": ClaudeCode,
    "opencode": Opencode,
    "vscode": Vscode,
    "vscode-insiders": Vscode,
    "azure": LanguageModel,
    "anthropic": LanguageModel,
    "gemini": LanguageModel,
    "litellm": LanguageModel,
}
"""What can run, by kind."""


def make_provider(target: ResolvedTarget, containment: Containment) -> Provider:
    """Return the provider of a target. Raises `ProviderError` where its settings do not fit together."""
    return PROVIDERS[target.kind](target, containment)

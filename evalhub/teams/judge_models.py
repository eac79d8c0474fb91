"""The models that evalhub recommends as judges: small ones, of the providers whose key is set."""

from __future__ import annotations

from collections.abc import Mapping

RECOMMENDED = {"OPENAI_API_KEY": "openai/gpt-4o-mini", "ANTHROPIC_API_KEY": "anthropic/claude-haiku-4-5"}
"""Models by the variable of their key (llm-tool-test evaluation, Judge Model)."""


def offered_judges(variables: Mapping[str, str]) -> list[str]:
    """Return the recommended models whose key is among the variables."""
    return [model for variable, model in RECOMMENDED.items() if variables.get(variable, "").strip()]

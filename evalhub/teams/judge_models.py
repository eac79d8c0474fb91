"""Models as judges: the recommended ones, small and of providers whose key is set, and which names are models."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

RECOMMENDED = {"OPENAI_API_KEY": "openai/gpt-4o-mini", "ANTHROPIC_API_KEY": "anthropic/claude-haiku-4-5"}
"""Models by the variable of their key (llm-tool-test evaluation, Judge Model)."""


def offered_judges(variables: Mapping[str, str]) -> list[str]:
    """Return the recommended models whose key is among the variables."""
    return [model for variable, model in RECOMMENDED.items() if variables.get(variable, "").strip()]


def model_id(name: str) -> str:
    """Return a model's litellm id, provider first; empty if no model has the name.

    A name with a slash is taken to have its provider.
    """
    provider = "" if "/" in name else _providers().get(name, "")
    return name if "/" in name else f"{provider}/{name}" if provider else ""


def judge_problem(name: str, targets: Collection[str]) -> str:
    """Return why a name can't be a judge's, with the nearest one that can; empty if it is a target's or a model's."""
    if not name or name in targets or model_id(name):
        return ""
    near = get_close_matches(name, [*targets, *_providers()], n=1)
    hint = (
        f"Did you mean '{near[0]}'?"
        if near
        else "Name a model with its provider, such as openai/gpt-4o-mini."
    )
    return f"The judge '{name}' is neither a target of this project nor a model that litellm knows. {hint}"


@cache
def _providers() -> dict[str, str]:
    """Return the provider of each chat model that litellm's own map names without one.

    The map is read as a file, because importing litellm takes seconds.
    """
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    models: dict[str, dict[str, Any]] = msgspec.json.decode(
        Path(spec.origin).with_name("model_prices_and_context_window_backup.json").read_bytes()
    )
    return {
        name: _provider(name, str(model["litellm_provider"]), models)
        for name, model in models.items()
        if "/" not in name and model.get("mode") == "chat" and model.get("litellm_provider")
    }


def _provider(name: str, listed: str, models: Collection[str]) -> str:
    """Return what an id begins with; the map lists kinds of a provider's interfaces."""
    if f"gemini/{name}" in models:
        return "gemini"
    return "vertex_ai" if listed.startswith("vertex_ai") else listed.removesuffix("_converse")

"""Targets that lead to the model server, and what a provider is asked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from evaluators.model import Price
from runs.sandbox.outbound import Outbound
from runs.sandbox.sandbox import Containment, Policy, detect_machine
from runs.targets.language_models.language_model import LanguageModel
from runs.targets.providers.base import Invocation
from runs.targets.providers.options import ResolvedTarget
from runs.targets.providers.registry import OPTIONS
from tests.model_server import ModelServer
from tests.runs.targets.providers.invocations import invocation_of

KEY = "sk-of-the-tests-0123456789"
LOOPBACK = Outbound(loopback=True)
CONTAINMENT = Containment(Policy("off"), detect_machine(), os.environ["PATH"], (), LOOPBACK)

FIELDS: dict[str, dict[str, Any]] = {
    "azure": {"deployment_name": "gpt-4o-mini"},
    "anthropic": {"model": "claude-sonnet-4-5"},
    "gemini": {},
    "litellm": {"model": "openai/gpt-4o-mini"},
}
KINDS = list(FIELDS)
QUICK = {"retry_initial_delay_ms": 1, "retry_max_delay_ms": 20}
"""The waits of a target that tests do not want to wait for."""


def target_of(
    server: ModelServer, kind: str = "litellm", *, prices: tuple[Price, ...] = (), **changes: Any
) -> ResolvedTarget:
    """Return a target of a kind at the server."""
    address = {"azure": {"resource_name": server.url}, "litellm": {"base_url": f"{server.url}/v1"}}.get(
        kind, {"base_url": server.url}
    )
    fields = {"api_key": KEY, **address, **FIELDS[kind], **QUICK, **changes}
    options = OPTIONS[kind].model_validate(fields)
    return ResolvedTarget(f"my-{kind}", kind, options, secrets=(KEY,), prices=prices)


def provider_of(server: ModelServer, kind: str = "litellm", **changes: Any) -> LanguageModel:
    """Return the provider of such a target."""
    return LanguageModel(target_of(server, kind, **changes), CONTAINMENT)


def asked(prompt: str = "What is the capital of France?", **changes: Any) -> Invocation:
    """Return a task without a workspace."""
    standard = {
        "key": "capital",
        "workspace": Path("/nowhere"),
        "scratch": Path("/nowhere"),
        "timeout_seconds": 20.0,
        "in_workspace": False,
    }
    return invocation_of(prompt, **{**standard, **changes})

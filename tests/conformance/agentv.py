"""Translates the cases of AgentV to the functions that the product itself uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

AREAS: dict[str, Callable[[Any], Any]] = {}

PENDING = frozenset(
    {
        "agentv.cli_provider",
        "agentv.expected_messages",
        "agentv.guideline_match",
        "agentv.llm_judge",
        "agentv.retry_config",
        "agentv.retry_policy",
        "agentv.score_aggregation",
        "agentv.targets_resolution",
        "agentv.tool_trajectory",
        "agentv.trace_summary",
    }
)

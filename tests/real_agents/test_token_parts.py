"""What codex, claude and opencode make of cached and reasoning tokens, and at which price."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.grading.costs import compute
from evaluators.model import Price, Usage, total_usage
from evaluators.transcripts import parse
from tests.real_agents.real import AGENTS, COMMANDS, agent, invocation, playing, turns

ANSWER = {
    "input_tokens": 1000,
    "output_tokens": 50,
    "cache_read_tokens": 700,
    "cache_write_tokens": 100,
    "cache_write_1h_tokens": 50,
    "reasoning_tokens": 30,
}
"""Of each answer of the model."""
PRICE = Price(
    "scripted",
    10.0,
    100.0,
    cache_read_per_million=1.0,
    cache_write_per_million=12.5,
    cache_write_1h_per_million=20.0,
)
SEEN = {
    # OpenAI's Responses have one kind of writes.
    "codex": Usage(1000, 50, cache_read=700, cache_write=150, reasoning=30),
    # Anthropic's Messages don't count reasoning apart.
    "claude_code": Usage(1000, 50, cache_read=700, cache_write=100, cache_write_1h=50),
    # OpenAI's Chat Completions have no writes.
    "opencode": Usage(1000, 50, cache_read=700, reasoning=30),
}
COSTS = {
    "codex": (150 * 10 + 700 * 1 + 150 * 12.5 + 50 * 100) / 1e6,
    "claude_code": (150 * 10 + 700 * 1 + 100 * 12.5 + 50 * 20 + 50 * 100) / 1e6,
    "opencode": (300 * 10 + 700 * 1 + 50 * 100) / 1e6,
}
"""Of each answer in US dollars, by hand."""


@pytest.mark.parametrize("kind", AGENTS)
def test_an_agents_cached_tokens_are_counted_and_priced(tmp_path: Path, kind: str) -> None:
    with playing(*turns(COMMANDS[1]), usage=ANSWER) as model:
        recording = agent(kind, model.url).invoke(invocation(tmp_path, kind))
        answers = len(model.seen)
    found = parse(recording.parser, recording.raw)
    assert answers == 2
    assert found.usage == total_usage([SEEN[kind]] * answers)
    assert found.usage is not None
    computed = compute(found.usage, found.usage_by_model, "scripted", {"scripted": PRICE}.get)
    assert computed is not None and not computed.in_full
    assert computed.usd == pytest.approx(answers * COSTS[kind])

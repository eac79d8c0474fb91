"""Cached and reasoning tokens of each provider's own usage, at prices written here by hand."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.model import Price, Usage
from tests.model_server import Answer
from tests.runs.targets.providers.model_targets import asked, provider_of

pytestmark = pytest.mark.one_database

OPENAI = {
    "prompt_tokens": 10_000,
    "completion_tokens": 500,
    "total_tokens": 10_500,
    "prompt_tokens_details": {"cached_tokens": 8_000, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 300, "audio_tokens": 0},
}
"""Of a chat completion: input includes the cache, output includes reasoning."""
ANTHROPIC = {
    "input_tokens": 1_000,
    "cache_creation_input_tokens": 3_000,
    "cache_read_input_tokens": 20_000,
    "cache_creation": {"ephemeral_5m_input_tokens": 2_000, "ephemeral_1h_input_tokens": 1_000},
    "output_tokens": 400,
    "service_tier": "standard",
}
"""Of a message: input is what is beside the cache."""
GEMINI = {
    "promptTokenCount": 5_000,
    "cachedContentTokenCount": 4_000,
    "candidatesTokenCount": 200,
    "thoughtsTokenCount": 100,
    "totalTokenCount": 5_300,
}
"""Of generateContent: the prompt includes the cache, candidates leave thoughts out."""

CASES: dict[str, tuple[dict[str, Any], Usage, float]] = {
    # gpt-4o-mini: 0.15 in, 0.075 cached, 0.60 out.
    "azure": (
        OPENAI,
        Usage(10_000, 500, cache_read=8_000, reasoning=300),
        (2_000 * 0.15 + 8_000 * 0.075 + 500 * 0.60) / 1e6,
    ),
    "litellm": (
        OPENAI,
        Usage(10_000, 500, cache_read=8_000, reasoning=300),
        (2_000 * 0.15 + 8_000 * 0.075 + 500 * 0.60) / 1e6,
    ),
    # claude-sonnet-4-5: 3 in, 0.30 read, 3.75 written for 5 minutes, 6 for an hour, 15 out.
    "anthropic": (
        ANTHROPIC,
        Usage(24_000, 400, cache_read=20_000, cache_write=2_000, cache_write_1h=1_000),
        (1_000 * 3 + 20_000 * 0.30 + 2_000 * 3.75 + 1_000 * 6 + 400 * 15) / 1e6,
    ),
    # gemini-2.5-flash: 0.30 in, 0.03 cached, 2.50 out, thoughts too.
    "gemini": (
        GEMINI,
        Usage(5_000, 300, cache_read=4_000, reasoning=100),
        (1_000 * 0.30 + 4_000 * 0.03 + 300 * 2.50) / 1e6,
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_each_providers_cached_tokens_have_their_price(models, kind):
    recorded, usage, cost = CASES[kind]
    models.script.turns = [Answer(recorded=recorded)]
    recording = provider_of(models, kind).invoke(asked())
    assert recording.usage == usage
    assert recording.cost_usd == pytest.approx(cost)


RATES = {"cache_read_per_million": 1.0, "cache_write_per_million": 20.0, "cache_write_1h_per_million": 40.0}


@pytest.mark.parametrize(
    ("rates", "cost"),
    [
        pytest.param(RATES, 1_000 * 10 + 20_000 * 1 + 2_000 * 20 + 1_000 * 40 + 400 * 30, id="all rates"),
        pytest.param({}, 24_000 * 10 + 400 * 30, id="one rate"),
        pytest.param(
            {"cache_write_per_million": 20.0}, 21_000 * 10 + 3_000 * 20 + 400 * 30, id="a rate of writes"
        ),
    ],
)
def test_the_projects_rates_of_the_cache_make_the_cost(models, rates, cost):
    price = Price("claude-sonnet-4-5", 10.0, 30.0, **rates)
    models.script.turns = [Answer(recorded=ANTHROPIC)]
    recording = provider_of(models, "anthropic", prices=(price,)).invoke(asked())
    assert recording.cost_usd == pytest.approx(cost / 1e6)

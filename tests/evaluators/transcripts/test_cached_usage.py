"""Cached and reasoning tokens as each agent, endpoint and trace format counts them."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from evaluators.grading.costs import compute
from evaluators.model import Price, Usage
from evaluators.transcripts import parse
from evaluators.transcripts.chat import parse as parse_chat
from evaluators.transcripts.sessions import claude_code as claude_sessions
from evaluators.transcripts.sessions import codex as codex_sessions
from evaluators.transcripts.sessions.session import Problems

CASES = Path(__file__).parents[2] / "files/cases"
ANTHROPIC = {
    "input_tokens": 1,
    "cache_creation_input_tokens": 30,
    "cache_read_input_tokens": 200,
    "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 10},
    "output_tokens": 4,
}
OF_ANTHROPIC = Usage(231, 4, cache_read=200, cache_write=20, cache_write_1h=10)
OF_OPENAI = Usage(100, 9, cache_read=80, cache_write=5, reasoning=6)


def lines(*each: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(line).encode() for line in each)


def message(id: str, model: str = "claude-sonnet-4-5", **usage: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": "hi"}]
    return {
        "type": "assistant",
        "message": {"id": id, "model": model, "content": content, "usage": ANTHROPIC | usage},
    }


def test_a_cut_claude_session_has_its_messages_input_by_model():
    found = parse("claude_code", lines(message("a"), message("a"), message("b", "claude-haiku-4-5")))
    assert found.usage == Usage(462, cache_read=400, cache_write=40, cache_write_1h=20, output_unknown=True)
    each = structs.replace(OF_ANTHROPIC, output=0, output_unknown=True)
    assert found.usage_by_model == {"claude-sonnet-4-5": each, "claude-haiku-4-5": each}


def test_output_that_a_cut_session_does_not_know_has_no_cost():
    found = parse("claude_code", (CASES / "65/claude.jsonl").read_bytes())
    assert found.usage == Usage(1200, cache_read=300, output_unknown=True)
    price = Price("stub", 5, 25)
    assert compute(found.usage, found.usage_by_model, "stub", lambda name: price) is None


def test_claudes_result_names_each_models_tokens_and_messages_the_lifetimes():
    models = {
        "claude-sonnet-4-5": {
            "inputTokens": 1,
            "cacheCreationInputTokens": 30,
            "cacheReadInputTokens": 200,
            "outputTokens": 4,
        },
        "claude-haiku-4-5": {"inputTokens": 7, "outputTokens": 2},
    }
    found = parse("claude_code", lines(message("a"), {"type": "result", "modelUsage": models}))
    assert found.usage_by_model == {"claude-sonnet-4-5": OF_ANTHROPIC, "claude-haiku-4-5": Usage(7, 2)}
    assert found.usage == Usage(238, 6, cache_read=200, cache_write=20, cache_write_1h=10)


def test_a_result_without_models_has_the_sessions_tokens():
    found = parse("claude_code", lines(message("a"), {"type": "result", "usage": ANTHROPIC}))
    assert (found.usage, found.usage_by_model) == (OF_ANTHROPIC, {})


CODEX = {
    "input_tokens": 100,
    "cached_input_tokens": 80,
    "cache_write_input_tokens": 5,
    "output_tokens": 9,
    "reasoning_output_tokens": 6,
}


def test_codex_counts_the_cache_as_input_and_reasoning_as_output():
    turn = {"type": "turn.completed", "usage": CODEX}
    assert parse("codex", lines(turn)).usage == OF_OPENAI
    assert parse("codex", lines(turn, turn)).usage == Usage(
        200, 18, cache_read=160, cache_write=10, reasoning=12
    )


def test_a_rollout_of_codex_counts_alike():
    meta = {"type": "session_meta", "payload": {"id": "s"}}
    say = {
        "type": "response_item",
        "payload": {"type": "message", "role": "assistant", "content": [{"text": "hi"}]},
    }
    counts = {"type": "token_count", "info": {"total_token_usage": CODEX, "last_token_usage": CODEX}}
    rollout = lines(meta, say, {"type": "event_msg", "payload": counts})
    [session] = codex_sessions.parse(BytesIO(rollout), Problems())
    assert session.transcript.usage == OF_OPENAI
    assert session.transcript.events[0].usage == OF_OPENAI


def test_a_session_file_of_claude_counts_as_its_stream():
    line = {"sessionId": "s", "uuid": "u", **message("a")}
    [session] = claude_sessions.parse(BytesIO(lines(line, line)), Problems())
    assert session.transcript.usage == OF_ANTHROPIC


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        pytest.param(ANTHROPIC, OF_ANTHROPIC, id="anthropic's messages"),
        pytest.param(
            {
                "prompt_tokens": 100,
                "completion_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 80},
                "completion_tokens_details": {"reasoning_tokens": 6},
            },
            Usage(100, 9, cache_read=80, reasoning=6),
            id="openai's chat completions",
        ),
        pytest.param(
            {
                "input_tokens": 100,
                "output_tokens": 9,
                "input_tokens_details": {"cached_tokens": 80},
                "output_tokens_details": {"reasoning_tokens": 6},
            },
            Usage(100, 9, cache_read=80, reasoning=6),
            id="openai's responses",
        ),
        pytest.param({"inputTokens": 100, "outputTokens": 9, "cachedInputTokens": 80, "reasoningTokens": 6}, Usage(100, 9, cache_read=80, reasoning=6), id="the ai sdk"),
    ],
)  # fmt: skip
def test_endpoints_tokens_have_their_providers_meaning(usage, found):
    assert parse_chat(json.dumps({"response": "hi", "usage": usage}).encode()).usage == found

import pytest

from evaluators.model import Usage
from tests.evaluators.grading.assertions.expecting import failures, judged, seen


@pytest.mark.spec("tool-forge", "maxLatencyMs")
def test_latency_may_reach_its_bound():
    assert judged(seen(duration_ms=100), max_latency_ms=100).passed
    assert failures(seen(duration_ms=100.5), max_latency_ms=100) == (
        "maxLatencyMs: took 100.5ms, more than 100ms",
    )


def test_a_latency_of_zero_is_a_bound():
    assert not judged(seen(duration_ms=1), max_latency_ms=0).passed


@pytest.mark.parametrize(
    ("answer", "bound", "passed"),
    [("12345678", 2, True), ("123456789", 2, False), ("", 0, True)],
    ids=["eight characters are two tokens", "nine are three", "none are none"],
)
@pytest.mark.spec("tool-forge", "maxTokens, with a tokenizer of one's own")
def test_without_usage_four_characters_are_a_token(answer, bound, passed):
    assert judged(seen(answer), max_tokens=bound).passed is passed


def test_the_endpoints_usage_counts_over_characters():
    assert failures(seen("long answer", usage=Usage(1, 50)), max_tokens=10) == (
        "maxTokens: 50 tokens (by usage), more than 10",
    )
    assert judged(seen("x" * 400, usage=Usage(1, 9)), max_tokens=10).passed


def test_an_estimated_usage_is_not_the_endpoints():
    assert judged(seen("1234", usage=Usage(1, 50, estimated=True)), max_tokens=1).passed

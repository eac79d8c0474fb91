"""Provider Retry Configuration of the AgentV specification: its three scenarios, and what lies between."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from runs.targets.definitions import define, resolve_definition
from runs.targets.providers.retry import (
    Backoff,
    RequestFailed,
    RequestFailure,
    delay_ms,
    is_retryable,
    retry_after_seconds,
    with_retry,
)

pytestmark = pytest.mark.one_database


class Calls:
    """Fails with the given failures, then answers."""

    def __init__(self, *failures: RequestFailure) -> None:
        self.failures = list(failures)
        self.made = 0
        self.waits: list[float] = []

    def __call__(self) -> str:
        self.made += 1
        if self.failures:
            raise RequestFailed(self.failures.pop(0))
        return "answer"


def retried(calls: Calls, backoff: Backoff | None = None) -> str:
    return with_retry(calls, backoff or Backoff(), calls.waits.append, jitter=lambda: 1.0)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        pytest.param(RequestFailure(status=500), True, id="a listed status"),
        pytest.param(RequestFailure(status=418), False, id="a status that is not listed"),
        pytest.param(
            RequestFailure(status=400, code="ECONNRESET"), False, id="a status before a network code"
        ),
        pytest.param(RequestFailure("HTTP 503 Service Unavailable"), True, id="a status in the message"),
        pytest.param(RequestFailure("HTTP 404 Not Found"), False, id="another status in the message"),
        pytest.param(RequestFailure(code="ETIMEDOUT"), True, id="a network code"),
        pytest.param(RequestFailure("fetch failed"), True, id="a network message"),
        pytest.param(RequestFailure("boom"), False, id="an unknown failure"),
        pytest.param(RequestFailure(network=True), True, id="a network failure by its kind"),
        pytest.param(RequestFailure("network aborted", name="AbortError"), False, id="an abort"),
        pytest.param(RequestFailure("network", name="CancelledError"), False, id="a cancellation"),
    ],
)
def test_it_decides_what_may_be_retried(failure, expected):
    assert is_retryable(failure) is expected


@pytest.mark.parametrize("status", [401, 403])
def test_it_never_repeats_what_is_forbidden_even_when_configured(status):
    assert is_retryable(RequestFailure(status=status), [status]) is False


@pytest.mark.spec("agentv", "Backoff by default")
def test_default_exponential_backoff():
    calls = Calls(*[RequestFailure(status=429)] * 3)
    assert retried(calls) == "answer"
    assert calls.made == 4
    assert calls.waits == [1.0, 2.0, 4.0]


def test_it_raises_the_last_failure_when_no_retry_is_left():
    calls = Calls(*[RequestFailure("HTTP 500")] * 9)
    with pytest.raises(RequestFailed, match="HTTP 500"):
        retried(calls, Backoff(max_retries=2))
    assert calls.made == 3


@pytest.mark.parametrize(
    "failure", [RequestFailure(status=401), RequestFailure(status=403), RequestFailure(status=400)]
)
@pytest.mark.spec("agentv", "Errors that are not retried")
def test_non_retryable_errors(failure):
    calls = Calls(failure)
    with pytest.raises(RequestFailed):
        retried(calls)
    assert (calls.made, calls.waits) == (1, [])


def test_it_does_not_take_other_errors_for_failed_requests():
    def broken() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        with_retry(broken, Backoff(), lambda seconds: pytest.fail("waited"))


@pytest.mark.parametrize(
    ("attempt", "jitter", "expected"),
    [(0, 0.75, 750), (0, 1.25, 1250), (2, 1.0, 4000), (6, 1.25, 60_000), (5_000, 0.75, 45_000)],
)
@pytest.mark.spec("agentv", "Backoff by default")
def test_the_wait_is_capped_before_and_after_the_jitter(attempt, jitter, expected):
    assert delay_ms(attempt, Backoff(), jitter=jitter) == expected


def test_it_honours_retry_after_up_to_the_cap():
    calls = Calls(
        RequestFailure(status=429, retry_after_seconds=7), RequestFailure(status=429, retry_after_seconds=900)
    )
    retried(calls)
    assert calls.waits == [7.0, 60.0]


def test_it_jitters_between_three_and_five_quarters():
    calls = Calls(RequestFailure(status=500))
    with_retry(calls, Backoff(), calls.waits.append)
    assert 0.75 <= calls.waits[0] <= 1.25


@pytest.mark.spec("agentv", "Retry fields in both spellings")
def test_configure_retry_in_targets_yaml():
    entry = {
        "name": "t",
        "provider": "gemini",
        "api_key": "${{ KEY }}",
        "maxRetries": 5,
        "retry_status_codes": [418],
    }
    backoff = Backoff.of(resolve_definition(define(entry), {"KEY": "k"}).options.retry)
    assert (backoff.max_retries, backoff.max_delay_ms, tuple(backoff.retryable_status_codes)) == (
        5,
        60_000,
        (418,),
    )
    assert Backoff.of(None) == Backoff()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3", 3.0),
        (2, 2.0),
        ("Sat, 21 Nov 2026 12:00:10 GMT", 10.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        (None, None),
    ],
)
def test_it_reads_retry_after(value, expected):
    assert retry_after_seconds(value, now=datetime(2026, 11, 21, 12, tzinfo=UTC)) == expected

"""Every way in which a model can fail, over real HTTP (AgentV evaluation, Provider Retry Configuration)."""

from __future__ import annotations

import threading
import time

import pytest

from runs.errors import ProviderError
from tests.model_server import Answer, Broken, Failure
from tests.runs.targets.providers.model_targets import KEY, KINDS, asked, provider_of

pytestmark = pytest.mark.one_database

BROKEN = [
    pytest.param(Broken("closed"), id="a closed connection"),
    pytest.param(Broken("malformed"), id="half a JSON answer"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("turn", [*[Failure(status) for status in (500, 408, 429, 502, 503, 504)], *BROKEN])
def test_it_asks_again_after_a_passing_failure(models, kind, turn):
    models.script.turns = [turn]
    recording = provider_of(models, kind).invoke(asked())
    assert recording.answer == "Paris."
    assert len(models.script.seen) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [401, 402, 403, 400, 404, 418])
@pytest.mark.spec("agentv", "Errors that are not retried")
def test_non_retryable_errors(models, kind, status):
    models.script.turns = [Failure(status)]
    with pytest.raises(ProviderError, match=f"did not answer: HTTP {status}: ") as raised:
        provider_of(models, kind).invoke(asked())
    assert raised.value.kind == "endpoint"
    assert len(models.script.seen) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_it_never_repeats_what_is_forbidden_even_when_configured(models, status):
    models.script.turns = [Failure(status)]
    with pytest.raises(ProviderError):
        provider_of(models, retry_status_codes=[status]).invoke(asked())
    assert len(models.script.seen) == 1


@pytest.mark.spec("agentv", "Retry fields in both spellings")
def test_configure_retry_in_targets_yaml(models):
    models.script.turns = [Failure(418)] * 9
    with pytest.raises(ProviderError, match=r"after 3 attempts: HTTP 418"):
        provider_of(models, max_retries=2, retry_status_codes=[418]).invoke(asked())
    assert len(models.script.seen) == 3


@pytest.mark.spec("agentv", "Backoff by default")
def test_default_exponential_backoff(models):
    models.script.turns = [Failure(503)] * 9
    with pytest.raises(ProviderError, match=r"after 4 attempts: HTTP 503.*state of the service"):
        provider_of(models).invoke(asked())
    assert len(models.script.seen) == 4


def test_it_notes_every_attempt_that_failed(models):
    models.script.turns = [Failure(429, "too many of them"), Broken("closed")]
    notes = provider_of(models).invoke(asked()).notes
    assert notes[0].startswith("Attempt 1 failed: HTTP 429: ") and "too many of them" in notes[0]
    assert notes[1].startswith("Attempt 2 failed: the connection broke: ")
    assert all("Asked again after" in note for note in notes[:2])


def test_it_waits_as_long_as_the_server_asks(models):
    models.script.turns = [Failure(429, headers=(("retry-after", "0.4"),))]
    began = time.monotonic()
    provider_of(models, retry_max_delay_ms=5_000).invoke(asked())
    assert time.monotonic() - began >= 0.4


def test_it_does_not_wait_beyond_the_targets_longest_wait(models):
    models.script.turns = [Failure(429, headers=(("retry-after", "60"),))]
    began = time.monotonic()
    provider_of(models, retry_max_delay_ms=20).invoke(asked())
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_silent_model_times_out(models, kind):
    models.script.turns = [Broken("silent", 5)]
    with pytest.raises(ProviderError, match=r"did not answer within 0.4 s.*`timeout_seconds`") as raised:
        provider_of(models, kind).invoke(asked(timeout_seconds=0.4))
    assert raised.value.kind == "timeout"


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_was_left_ends_with_its_time_limit(models, kind):
    provider_of(models, kind).invoke(asked())
    models.script.turns = [Failure(503), Broken("silent", 60)]
    before = set(threading.enumerate())
    began = time.monotonic()
    with pytest.raises(ProviderError):
        provider_of(models, kind).invoke(asked(timeout_seconds=0.6))
    left = [each for each in threading.enumerate() if each.name == "model-call" and each not in before]
    for thread in left:
        thread.join(10)
    assert not any(thread.is_alive() for thread in left)
    assert time.monotonic() - began < 30


def test_the_time_limit_holds_over_all_attempts(models):
    models.script.turns = [Failure(503)] * 99
    began = time.monotonic()
    with pytest.raises(ProviderError, match=r"HTTP 503.* the time limit of 0\.5 s") as raised:
        waits = {"retry_initial_delay_ms": 200, "retry_max_delay_ms": 5_000}
        provider_of(models, max_retries=99, **waits).invoke(asked(timeout_seconds=0.5))
    assert raised.value.kind == "endpoint"
    assert time.monotonic() - began < 30


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_has_too_many_requests_until_the_time_limit_failed(models, kind):
    """A trial in a workspace would else be left to its gates, which fail it."""
    models.script.turns = [Failure(429)] * 999
    waits = {"retry_initial_delay_ms": 100, "retry_backoff_factor": 1}
    with pytest.raises(ProviderError, match=r"HTTP 429.* the time limit of 1\.5 s") as raised:
        provider_of(models, kind, max_retries=999, **waits).invoke(
            asked(timeout_seconds=1.5, in_workspace=True)
        )
    assert raised.value.kind == "endpoint"
    assert len(models.script.seen) > 2


@pytest.mark.parametrize("in_workspace", [True, False])
@pytest.mark.parametrize("status", [408, 429, 500, 503])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_asks_to_wait_beyond_the_time_limit_failed(models, kind, status, in_workspace):
    models.script.turns = [Failure(status, headers=(("retry-after", "3600"),))] * 9
    began = time.monotonic()
    with pytest.raises(ProviderError) as raised:
        given = asked(timeout_seconds=8.0, in_workspace=in_workspace)
        provider_of(models, kind, retry_max_delay_ms=60_000).invoke(given)
    passed = time.monotonic() - began
    assert raised.value.kind == "endpoint"
    assert f"HTTP {status}" in str(raised.value)
    assert "It asks to wait 3600 s (Retry-After), longer than the time limit of 8 s allows." in str(
        raised.value
    )
    assert raised.value.seconds is not None
    assert 0 < raised.value.seconds <= passed < 3600


@pytest.mark.slow
@pytest.mark.parametrize("in_workspace", [True, False])
def test_a_model_that_fell_silent_after_an_answer_failed(models, in_workspace):
    # To load the library may take the first seconds.
    models.script.turns = [Failure(429), Broken("silent", 20)]
    with pytest.raises(ProviderError, match=r"HTTP 429.*no answer within the time limit of 8 s") as raised:
        provider_of(models).invoke(asked(timeout_seconds=8.0, in_workspace=in_workspace))
    assert raised.value.kind == "endpoint"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_a_connection_failed_even_if_time_ran_out(models, kind):
    models.script.turns = [Broken("closed")] * 9
    given = asked(timeout_seconds=5.0, in_workspace=True)
    with pytest.raises(
        ProviderError, match=r"the connection broke.* later than the time limit of 5 s"
    ) as raised:
        provider_of(models, kind, retry_initial_delay_ms=60_000, retry_max_delay_ms=60_000).invoke(given)
    assert raised.value.kind == "endpoint"


def test_the_targets_own_time_limit_is_tighter(models):
    models.script.turns = [Broken("silent", 5)]
    with pytest.raises(ProviderError, match=r"within 0\.3 s"):
        provider_of(models, timeout_seconds=0.3).invoke(asked(timeout_seconds=60))


def test_a_timeout_leaves_it_to_the_gates_where_there_is_a_workspace(models):
    models.script.turns = [Broken("silent", 5)]
    recording = provider_of(models).invoke(asked(timeout_seconds=0.3, in_workspace=True))
    assert recording.timed_out and recording.answer is None
    assert "did not answer within 0.3 s" in recording.notes[-1]


@pytest.mark.parametrize("turn", [Broken("silent", 30), Failure(429, headers=(("retry-after", "30"),))])
def test_a_cancelled_run_does_not_wait(models, turn):
    models.script.turns = [turn]
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    recording = provider_of(models, retry_max_delay_ms=60_000).invoke(
        asked(timeout_seconds=100, cancelled=stop.is_set)
    )
    assert recording.cancelled
    assert time.monotonic() - began < 10


def test_a_closed_port_is_reported(models):
    with pytest.raises(ProviderError, match=r"the connection broke.*Check the target's address") as raised:
        provider_of(models, base_url="http://127.0.0.1:9/v1").invoke(asked())
    assert raised.value.kind == "endpoint"


def test_no_secret_is_in_an_error_or_a_note(models):
    models.script.turns = [Failure(500, f"internal: the key {KEY} broke"), Failure(401, f"bad key {KEY}")]
    with pytest.raises(ProviderError, match="REDACTED") as raised:
        provider_of(models).invoke(asked())
    assert KEY not in str(raised.value)
    models.script.turns = [Failure(500, f"internal: the key {KEY} broke"), Answer()]
    assert KEY not in "".join(provider_of(models).invoke(asked()).notes)

"""Outages that Gemini CLI, Qwen Code and Copilot CLI repeated until the time limit ended them (real sessions)."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.transcripts.endings import FailedRequest, ending_of
from evaluators.transcripts.repeated_requests import LOG, find_repeated_request
from evaluators.transcripts.sessions.sub_agents import MAIN

FILES = Path(__file__).parents[2] / "files/repeated_outages"
GEMINI_LOG = (FILES / "gemini_cli.log").read_bytes()
QWEN_SESSION = (FILES / "qwen_code.session.jsonl").read_bytes()
ASKED = FailedRequest("The script asks for 503.", 503)


def test_gemini_names_the_request_on_standard_error() -> None:
    assert find_repeated_request("gemini_cli", {LOG: GEMINI_LOG}) == ASKED
    went_on = GEMINI_LOG + b"[+00:40] [stdout] message: Done.\n"
    assert find_repeated_request("gemini_cli", {LOG: went_on}) == FailedRequest()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Attempt 1 failed with status 429. Retrying with backoff... _ApiError: no JSON", FailedRequest("_ApiError: no JSON", 429)),
        ("Attempt 2 failed. Retrying with backoff... TypeError: fetch failed", FailedRequest("TypeError: fetch failed")),
        ("Attempt 3 failed: You have exhausted your capacity. Retrying after 900ms...", FailedRequest("You have exhausted your capacity. Retrying after 900ms...")),
        ("Attempt 1 failed with 429 error (no Retry-After header). Retrying with backoff... x", FailedRequest("x", 429)),
        ("Attempt 1 failed with status 413. Retrying with backoff... x", FailedRequest()),
        ("The attempt failed.", FailedRequest()),
    ],
)  # fmt: skip
def test_the_words_of_an_attempt(line: str, expected: FailedRequest) -> None:
    assert find_repeated_request("gemini_cli", {LOG: f"[+00:01] [stderr] {line}".encode()}) == expected


def test_qwen_names_the_request_in_its_session_file() -> None:
    assert find_repeated_request("qwen_code", {MAIN: QWEN_SESSION}) == FailedRequest(
        "503 The script asks for 503.", 503
    )
    answered = b'{"type":"system","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_response"}}}\n'
    assert find_repeated_request("qwen_code", {MAIN: QWEN_SESSION + answered}) == FailedRequest()
    assert find_repeated_request("qwen_code", {}) == FailedRequest()


def test_copilot_names_the_request_in_its_stream() -> None:
    stream = (FILES / "copilot_cli.jsonl").read_bytes()
    found = ending_of("copilot_cli", stream)
    assert found is not None
    assert (found.closed, found.failure, found.status) == (False, "The script asks for 503.", 503)
    answering = ending_of("copilot_cli", stream + b'{"type":"assistant.message_delta","data":{}}\n')
    assert answering is not None
    assert answering.failure == ""


@pytest.mark.parametrize("kind", ["gemini_cli", "qwen_code"])
def test_their_streams_say_nothing_of_it(kind: str) -> None:
    found = ending_of(kind, (FILES / f"{kind}.jsonl").read_bytes())
    assert found is not None
    assert found.failure == ""

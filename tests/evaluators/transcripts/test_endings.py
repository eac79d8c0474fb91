"""How sessions ended, by what the real agents printed when their model's service failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluators.transcripts import parse
from evaluators.transcripts.endings import SessionEnd, ending_of, failure_in_opencode_log, is_of_service

FILES = Path(__file__).parents[2] / "files"
FOLDER = FILES / "outages"
SPECIMENS = sorted(FOLDER.glob("*/*.jsonl"))
"""Streams by agent, moment and fault; opencode repeats most failed requests without a word, but in its log."""
LOGS = {path.with_suffix(".jsonl"): path for path in FOLDER.glob("*/*.log")}
OWN = ("amid-400", "answered-500")
NAMES = {path: f"{path.parent.name}-{path.stem}" for path in SPECIMENS}
CUT = [path for path in SPECIMENS if path.stem not in OWN and path not in LOGS]


def lines(*events: dict[str, Any]) -> bytes:
    return "\n".join(map(json.dumps, events)).encode()


def ended(kind: str, *events: dict[str, Any]) -> SessionEnd:
    found = ending_of(kind, lines(*events))
    assert found is not None
    return found


def test_every_agent_has_specimens_of_every_moment():
    found = {(path.parent.name, path.stem.split("-")[0]) for path in SPECIMENS}
    assert found >= {
        (kind, moment)
        for kind in ("codex", "claude_code", "opencode")
        for moment in ("before", "amid", "after")
    }


@pytest.mark.parametrize("path", CUT, ids=NAMES.get)
def test_a_service_that_fails_is_found_with_its_words_and_status(path):
    found = ending_of(path.parent.name, path.read_bytes())
    fault = path.stem.split("-")[1]
    assert found is not None
    assert not found.answered
    assert found.failure
    assert found.status == (int(fault) if fault.isdigit() else None)


@pytest.mark.parametrize("path", LOGS.values(), ids=lambda path: path.stem)
def test_what_opencode_repeats_without_a_word_is_in_its_log(path):
    fault = path.stem.split("-")[1]
    failure = failure_in_opencode_log(path.read_text()).said
    assert failure
    if fault.isdigit():
        assert failure == f"The script asks for {fault}."


def test_a_log_of_a_session_that_went_on_has_no_failure():
    log = (FOLDER / "opencode/amid-429.log").read_text()
    went_on = "timestamp=t level=INFO run=r message=evaluated permission=bash action.action=allow"
    assert failure_in_opencode_log(f"{log}\n{went_on}").said == ""
    assert failure_in_opencode_log("").said == ""
    title = log.replace("small=false", "small=true")
    assert failure_in_opencode_log(title).said == ""


@pytest.mark.parametrize("kind", ["codex", "claude_code", "opencode"])
def test_a_request_that_the_service_calls_wrong_is_the_agents_own(kind):
    found = ending_of(kind, (FOLDER / kind / "amid-400.jsonl").read_bytes())
    assert found == SessionEnd(closed=True)


@pytest.mark.parametrize(
    ("case", "said", "status"),
    [
        ("f500", "API Error: 500 scripted fault.", 500),
        ("f401", "Invalid API key", 401),
        ("drop", "API Error: Unable to connect to API (ECONNRESET)", None),
    ],
)
def test_a_status_or_an_error_wins_over_what_claude_code_calls_the_end(case, said, status):
    """Claude Code 2.1.197, which npm takes on Node 20, says *completed* of an outage."""
    found = ending_of("claude_code", (FILES / f"cases/63/{case}.jsonl").read_bytes())
    assert found is not None
    assert (found.failure.startswith(said), found.status) == (True, status)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"terminal_reason": "max_turns", "subtype": "error_max_turns", "is_error": True}, {}),
        (
            {"terminal_reason": "completed", "is_error": True, "api_error_status": 400},
            {"error": "invalid_request"},
        ),
        ({"terminal_reason": "prompt_too_long", "is_error": True, "api_error_status": 413}, {}),
        ({"terminal_reason": "completed", "is_error": False, "result": "Done."}, {}),
    ],
)
def test_other_ends_of_claude_code_stay_the_trials_own(result, message):
    retry = {"type": "system", "subtype": "api_retry", "error_status": 500, "error": "server_error"}
    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": "Done."}]}, **message}
    assert ended("claude_code", retry, said, {"type": "result", **result}).failure == ""


def test_a_failure_after_the_final_result_does_not_count():
    """Claude Code woke up for a command in the background after its answer; then its service failed."""
    found = ending_of("claude_code", (FOLDER / "claude_code/answered-500.jsonl").read_bytes())
    assert found == SessionEnd(closed=True, answered=True)


def test_the_final_result_stays_the_answer():
    stream = (FOLDER / "claude_code/answered-500.jsonl").read_bytes()
    assert parse("claude_code", stream).answer == "All done."


@pytest.mark.parametrize("kind", ["codex", "claude_code", "opencode"])
def test_whole_and_cut_streams_are_told_apart(kind):
    whole = ending_of(kind, (FILES / f"streams/{kind}.jsonl").read_bytes())
    cut = ending_of(kind, (FILES / f"streams/{kind}_cut.jsonl").read_bytes())
    assert (whole, cut) == (SessionEnd(closed=True, answered=True), SessionEnd())


def test_a_session_that_ends_after_a_rejected_call_is_closed():
    found = ending_of("opencode", (FILES / "streams/opencode_rejected.jsonl").read_bytes())
    assert found == SessionEnd(closed=True)


@pytest.mark.parametrize("parser", ["events", "plain_text", "chat", "trace"])
def test_other_formats_say_nothing_of_it(parser):
    assert ending_of(parser, b"API Error: 401") is None
    assert ending_of("codex", b"") is None


@pytest.mark.parametrize("status", [401, 402, 403, 404, 408, 429, 500, 502, 503, 504, 529, 599])
def test_statuses_of_the_service(status):
    assert is_of_service(status)


@pytest.mark.parametrize("status", [200, 400, 405, 409, 413, 418, 422, 600])
def test_statuses_of_what_was_asked(status):
    assert not is_of_service(status)


@pytest.mark.parametrize(
    "result",
    [
        {"subtype": "error_max_turns", "terminal_reason": "max_turns"},
        {"subtype": "error_max_turns", "result": "API Error: 500 before"},
        {"subtype": "error_max_budget_usd"},
        {"subtype": "error_during_execution", "terminal_reason": "aborted_tools"},
        {"subtype": "success", "terminal_reason": "prompt_too_long", "result": "Prompt is too long"},
        {"subtype": "success", "result": "Prompt is too long"},
        {"subtype": "success", "terminal_reason": "api_error", "api_error_status": 400, "result": "API Error: 400 no"},
        {"subtype": "success", "terminal_reason": "api_error", "api_error_status": 413, "result": "Request too large"},
        {"subtype": "success", "result": "API Error: 400 invalid_request_error"},
    ],
)  # fmt: skip
def test_what_claude_code_calls_an_error_and_is_the_trials_own(result):
    assert ended("claude_code", {"type": "result", "is_error": True, **result}) == SessionEnd(closed=True)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('API Error: 401 {"type":"error"} · Please run /login', 401),
        ("API Error: 529 overloaded", 529),
        ("API Error: Connection error.", None),
        ("Invalid API key · Please run /login", None),
        ("OAuth token has expired. Please run /login", None),
        ("Credit balance is too low", None),
    ],
)
def test_claude_codes_older_versions_name_a_failure_in_their_result_alone(text, status):
    found = ended("claude_code", {"type": "result", "subtype": "success", "is_error": True, "result": text})
    assert (found.failure, found.status) == (text, status)


@pytest.mark.parametrize(
    "message",
    [
        "Codex ran out of room in the model's context window. Start a new thread or clear earlier history.",
        "stream disconnected before completion: Incomplete response returned, reason: content_filter",
        "This request has been flagged for possible cybersecurity risk.",
        "unexpected status 400 Bad Request: no such tool",
        "unexpected status 413 Payload Too Large: too long",
        "shared rollout token budget exhausted",
    ],
)
def test_what_codex_fails_of_and_is_the_trials_own(message):
    assert ended("codex", {"type": "turn.failed", "error": {"message": message}}) == SessionEnd(closed=True)


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("You've hit your usage limit. Try again at 5 pm.", None),
        ("Selected model is at capacity. Please try a different model.", None),
        ("Your access token could not be refreshed because it has expired. Log in again.", None),
        ("We're currently experiencing high demand, which may cause temporary errors.", 500),
    ],
)
def test_what_codex_says_of_its_service_without_a_status(message, status):
    found = ended("codex", {"type": "turn.failed", "error": {"message": message}})
    assert (found.failure, found.status) == (message, status)


def test_a_session_that_is_repeating_a_request_says_so_in_its_last_event():
    """Its time limit ends it then."""
    work = {"type": "assistant", "message": {"content": []}}
    retry = {"type": "system", "subtype": "api_retry", "error_status": 429, "error": "rate_limit"}
    assert ended("claude_code", work, retry) == SessionEnd(failure="rate_limit", status=429)
    assert ended("claude_code", retry, work) == SessionEnd()
    again = {"type": "error", "message": "Reconnecting... 2/5 (unexpected status 503 Unavailable: later)"}
    item = {"type": "item.completed", "item": {"type": "reasoning"}}
    assert ended("codex", item, again).status == 503
    assert ended("codex", again, item) == SessionEnd()
    assert ended("codex", {"type": "error", "message": "Reconnecting... 1/5"}).failure


def test_opencodes_own_ends():
    failed = {"type": "error", "error": {"name": "ContextOverflowError", "data": {"message": "too long"}}}
    assert ended("opencode", failed) == SessionEnd(closed=True)
    refused = {"name": "APIError", "data": {"message": "filtered", "isRetryable": False}}
    assert ended("opencode", {"type": "error", "error": refused}) == SessionEnd(closed=True)
    login = {"name": "ProviderAuthError", "data": {"message": "expired", "providerID": "x"}}
    assert ended("opencode", {"type": "error", "error": login}).failure == "expired"

"""What is stored of an agent's last call while its trial runs."""

from __future__ import annotations

import pytest

from evalhub.lib.limits import LONGEST_NAME
from evaluators.transcripts.latest import LatestCalls
from runs.engine.task import storable_call, storable_calls

SECRET = "sesame-open-wide"


@pytest.mark.parametrize(
    ("call", "stored"),
    [
        ("taskmgr list", "taskmgr list"),
        ("", ""),
        ("cat <<EOF\n  one\n\ttwo\nEOF\n", "cat <<EOF one two EOF"),
        (f"login {SECRET} now", "login [REDACTED] now"),
        ("curl -H 'Authorization: Bearer abcdefghijklmnop'", "curl -H 'Authorization: Bearer [REDACTED]'"),
        ("ls /home/mallory/x", "ls /home/[REDACTED_USER]/x"),
    ],
    ids=["as it is", "nothing", "on one line", "a value", "a bearer", "a user"],
)
def test_a_call_is_kept_on_one_line_and_without_secrets(call, stored):
    assert storable_call(call, (SECRET,)) == stored


def test_a_long_call_is_cut_and_says_so():
    assert storable_call("x" * LONGEST_NAME, ()) == "x" * LONGEST_NAME
    assert storable_call("x" * (LONGEST_NAME + 1), ()) == "x" * (LONGEST_NAME - 1) + "…"


@pytest.mark.parametrize("before", range(LONGEST_NAME - 20, LONGEST_NAME + 1))
def test_no_secret_is_kept_by_half(before):
    call = "x" * (before - 1) + " " + SECRET + " --password=abracadabra"
    stored = storable_call(call, (SECRET,))
    assert len(stored) <= LONGEST_NAME
    assert "ses" not in stored
    assert "abra" not in stored


def test_a_value_longer_than_what_is_kept_is_masked():
    long = "k" * 100_000
    assert storable_call(f"put {long}", (long,)) == "put [REDACTED]"


def test_a_reported_call_is_made_storable():
    assert storable_calls(LatestCalls(f"login {SECRET}", 3), (SECRET,)) == LatestCalls("login [REDACTED]", 3)
    assert storable_calls(LatestCalls(), (SECRET,)) == LatestCalls()


@pytest.mark.parametrize(("code", "kept"), [(0, 0), (-9, -9), (2**31, None), (-(10**30), None), (None, None)])
def test_an_exit_code_that_no_column_holds_is_not_known(code, kept):
    assert storable_calls(LatestCalls("ls", 1, code), ()).exit_code == kept

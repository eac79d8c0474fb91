from __future__ import annotations

import json

import pytest

from evaluators.redaction import mask_values, mask_values_in_bytes, redact_patterns
from tests.linear_time import assert_linear_time, quarter

KEY = "a1B2c3D4e5F6g7H8i9J0k1L2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain words stay", "plain words stay"),
        ("SK-12345678901234567890X", "SK-[REDACTED]"),
        (f"sk-ant-api03-{KEY}", "sk-[REDACTED]"),
        (f"sk-proj-{KEY}_x", "sk-[REDACTED]"),
        (f"ghp_{KEY}", "ghp_[REDACTED]"),
        (f"github_pat_{KEY}", "github_pat_[REDACTED]"),
        (f"glpat-{KEY}", "glpat-[REDACTED]"),
        (f"xoxb-{KEY}", "xoxb-[REDACTED]"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA[REDACTED]"),
        (f"AIza{KEY}{KEY}", "AIza[REDACTED]"),
        ("authorization: bearer ABC.DEF", "authorization: Bearer [REDACTED]"),
        ("Token: abc.def/ghi= tail", "Token: [REDACTED] tail"),
        ("api-key:abc123", "api-key: [REDACTED]"),
        ("apikey: 'abc123'", "apikey: [REDACTED]"),
        ("password: mysecret123", "password: [REDACTED]"),
        ('password: "two words" x', "password: [REDACTED] x"),
        ("OPENAI_API_KEY=abc123 run", "OPENAI_API_KEY=[REDACTED] run"),
        ("AWS_SECRET_ACCESS_KEY=abc/123", "AWS_SECRET_ACCESS_KEY=[REDACTED]"),
        ("?token=abc&x=1", "?token=[REDACTED]&x=1"),
        ('{"token": "a b", "n": 1}', '{"token": "[REDACTED]", "n": 1}'),
        ('{"client_secret":"a\\"b"}', '{"client_secret":"[REDACTED]"}'),
        ("{'password': 'x'}", "{'password': '[REDACTED]'}"),
        ("https://me:pw@host/x", "https://me:[REDACTED]@host/x"),
        ("mail user@example.com now", "mail [REDACTED_EMAIL] now"),
        ("/home/bob/x and /Users/ann", "/home/[REDACTED_USER]/x and /Users/[REDACTED_USER]"),
        ("C:\\Users\\bob\\x", "C:\\Users\\[REDACTED_USER]\\x"),
        ("max_tokens: 5", "max_tokens: 5"),
        ("task-implement-scripts-system-now", "task-implement-scripts-system-now"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----[REDACTED]",
        ),
    ],
)
def test_it_redacts_texts_that_look_secret(text: str, expected: str) -> None:
    assert redact_patterns(text) == expected


def test_redacting_twice_changes_nothing_more() -> None:
    once = redact_patterns(f"token: abc password=x sk-{KEY} a@b.de /home/bob/")
    assert redact_patterns(once) == once


@pytest.mark.hostile
@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a@" * 100_000, '"token": "' + "\\" * 100_000, "://" + ":" * 100_000]
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    assert_linear_time(redact_patterns, quarter(text), text)


def test_it_masks_the_longest_value_first() -> None:
    assert mask_values("x=secret1234 y=secret", ["secret", "secret1234"]) == "x=[REDACTED] y=[REDACTED]"


def test_it_leaves_short_values() -> None:
    assert mask_values("x=12345", ["12345", ""]) == "x=12345"


def test_it_masks_values_as_json_writes_them() -> None:
    value = 'se"cret\u00e9\n'
    assert mask_values(json.dumps({"a": value}), [value]) == '{"a": "[REDACTED]"}'
    assert mask_values(json.dumps({"a": value}, ensure_ascii=False), [value]) == '{"a": "[REDACTED]"}'


def test_it_masks_binary_content() -> None:
    assert mask_values_in_bytes(b"\xff secret1 \x00", ["secret1"]) == b"\xff [REDACTED] \x00"
    assert mask_values_in_bytes(b"\xff", []) == b"\xff"

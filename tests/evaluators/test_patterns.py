from __future__ import annotations

import pytest

from evaluators.patterns import BadPattern, SlowPattern, compile_pattern, required_literal
from tests.linear_time import assert_linear_time


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"t\s+\S+", None),
        (r"t\s+(\S+)", "add"),
        (r"(t)\s+(\S+)", "add"),
        (r"t\s+(?P<sub>\S+)\s+(\S+)", "add"),
        (r"t\s+(x)?", None),
        (r"t(?=\s)\s+(\S+)", "add"),
    ],
)
def test_the_named_or_last_group_is_the_subcommand(pattern: str, expected: str | None) -> None:
    match = compile_pattern(pattern).search("$ t add x")
    assert match is not None
    assert match.sub == expected
    assert match.start == 2


def test_without_matches_nothing_is_found() -> None:
    assert compile_pattern("x+").search("abc") is None


@pytest.mark.parametrize("pattern", ["t(", "*", "[a", "(?P<sub>x)(?P<sub>y)(?=z"])
def test_it_refuses_invalid_patterns(pattern: str) -> None:
    with pytest.raises(BadPattern, match=r"is not a regular expression: .*\.$"):
        compile_pattern(pattern)


@pytest.mark.hostile
def test_nested_repetition_takes_linear_time() -> None:
    def search(number: int) -> None:
        assert compile_pattern("(a+)+$").search("a" * number + "!") is None

    assert_linear_time(search, 1_250, 5_000)


@pytest.mark.hostile
def test_a_slow_pattern_is_stopped() -> None:
    with pytest.raises(SlowPattern, match="was stopped"):
        compile_pattern(r"^(?!x)(a|aa)+\1$").search("a" * 60 + "!")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"my-tool\s+(\S+)", "my-tool"),
        (r"^\s*taskmgr\b", "taskmgr"),
        (r"python -m (?P<sub>tasks)", "python"),
        (r"abc?def*", "ab"),
        (r"\x41bcd", ""),
        (r"[abc]+mytool", "mytool"),
        (r"\bgit\.exe ", "git.exe"),
        ("a|b", ""),
        ("(?i)tool", ""),
        (r"(tool)\s", ""),
        (r"x{0,3}yz", "yz"),
    ],
)
def test_it_finds_the_literal_of_every_match(pattern: str, expected: str) -> None:
    assert required_literal(pattern) == expected

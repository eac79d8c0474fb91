"""Patterns made to take for ever: each is answered soon, and other threads go on meanwhile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluators.grading.gates.json_path_gate import BadJsonPath, CommandJsonPath, check_json_path
from evaluators.patterns import (
    LONGEST,
    BadPattern,
    PatternError,
    SlowPattern,
    compile_pattern,
    largest_repeat,
    pattern_budget,
)
from runs.sandbox.pattern_processes import PatternProcesses, run_pattern
from scenarios.formats.text_files import read_toml
from tests.linear_time import assert_linear_time, quarter

pytestmark = pytest.mark.hostile

ANSWERED = 8.0
"""Seconds; on a quiet machine each takes 0.6 at most."""
GAP = 2.0
"""Seconds for which another thread may stand still on a busy machine; the attacks held it for minutes."""

MEGABYTE = 1_000_000
HOSTILE = {
    "counts within counts": ("((a{100}){100}){100}", "a"),
    "counts within counts, with look-ahead": ("(?=x)((a{100}){100}){100}", "a"),
    "many counts within counts": ("(?=a)" + "(?:(?:a{0,9}){0,9}){0,9}" * 60, "a" * 5000 + "!"),
    "nested repetition": ("(a+)+$", "a" * MEGABYTE + "!"),
    "nested repetition, with look-ahead": ("^(?=a)(a+)+$", "a" * 40 + "!"),
    "a back-reference": (r"^(a|aa)+\1$", "a" * 60 + "!"),
    "overlapping alternatives": (r"(?=.)(?:a|a|ab|aab)*c", "a" * 3000),
    "look-behind over all of it": (r"(?<=a.*b)c", "a" * 20_000 + "b" * 20_000),
    "a long text with look-ahead": (r"(?=a)a*a*a*a*b", "a" * 100_000),
    "groups 900 deep": ("(?=a)" + "(" * 900 + "a" + ")" * 900, "a"),
    "look-ahead 300 deep": ("(?=" * 300 + "a" + ")" * 300, "a"),
    "classes that nothing closes": ("[" * LONGEST, "a"),
    "large classes": ("(?i)" + r"[\pL\pN]" * 180, "a" * 50_000),
    "large classes repeated": (r"(?:\pL\pN){400}", "a"),
    "a large program over a long text": ("[ab]*a[ab]{900}c", "a" * MEGABYTE),
    "a huge pattern": ("(?=a)" + "(a|b)" * 100_000, "a"),
    "flags": ("(?" + "i" * 1900 + ")a", "a"),
    "fuzzy matching": (r"(?=a)(?:aaaaaaaaaaaaaaaaaaaa){e<=15}b", "ab" * 50_000),
    "recursion": (r"(?=a)(a(?R)?a)b", "a" * 30_000),
}


@contextmanager
def ticking() -> Iterator[list[float]]:
    """Give the seconds between ticks of another thread, while it runs."""
    gaps: list[float] = []
    done = threading.Event()

    def tick() -> None:
        last = time.monotonic()
        while not done.wait(0.01):
            now = time.monotonic()
            gaps.append(now - last)
            last = now

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield gaps
    finally:
        done.set()
        thread.join()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("javascript", [False, True], ids=["", "javascript"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pattern_is_answered_soon(name, javascript):
    pattern, text = HOSTILE[name]
    compile_pattern.cache_clear()
    began = time.monotonic()
    with ticking() as gaps:
        try:
            compile_pattern(pattern, javascript=javascript).search(text)
        except PatternError as error:
            assert str(error).endswith(".")
    assert time.monotonic() - began < ANSWERED
    assert max(gaps, default=0.0) < GAP


def test_a_pattern_longer_than_2_kb_is_refused():
    compile_pattern("a" * LONGEST)
    with pytest.raises(BadPattern, match=r"2001 bytes; 2000 are allowed\. Split"):
        compile_pattern("a" * (LONGEST + 1))


@pytest.mark.parametrize(
    ("pattern", "product"),
    [
        ("abc", 1),
        ("a{7}", 7),
        ("a{2,9}", 9),
        ("a{3,}", 3),
        ("(a{20}b){30}", 600),
        ("(?:(a{2}){3}|b){4}c{5}", 24),
        ("(a{2}){3}(b{9}){9}", 81),
        (r"[({9}]{3}\({4}", 4),
        ("a{b}{,}", 1),
    ],
)
def test_nested_counts_are_multiplied(pattern, product):
    assert largest_repeat(pattern) == product


def test_nested_counts_beyond_the_limit_are_refused():
    with pytest.raises(BadPattern, match="repeats something 10000 times"):
        compile_pattern("(?!b)(a{100}){100}")


def test_look_around_still_matches():
    match = compile_pattern(r"(?<=total: )(?P<sub>\d+)(?!\d)").search("total: 42.")
    assert match is not None
    assert (match.text, match.start, match.end, match.sub) == ("42", 7, 9, "42")


def test_a_group_that_took_no_part_is_none():
    match = compile_pattern("(?=a)a(b)?").search("ac")
    assert match is not None
    assert match.sub is None


def test_a_long_text_is_searched_to_its_end():
    match = compile_pattern(r"(?<=x)y(z)").search("é" * MEGABYTE + "xyz")
    assert match is not None
    assert (match.start, match.sub) == (MEGABYTE + 1, "z")


@pytest.mark.parametrize("pattern", ["b", "(?=b)b"], ids=["linear", "with look-ahead"])
def test_half_of_a_surrogate_pair_stops_nothing(pattern):
    match = compile_pattern(pattern).search("a\ud800b")
    assert match is not None
    assert match.start == 2


def test_patterns_share_a_budget():
    slow = compile_pattern(r"^(?!x)(a|aa)+\1$")
    with pattern_budget(0.2):
        with pytest.raises(SlowPattern, match="took longer than"):
            slow.search("a" * 60 + "!")
        with pytest.raises(SlowPattern, match="was not run"):
            slow.search("a")
    assert slow.search("aaa") is not None


@pytest.mark.slow
def test_many_slow_patterns_at_once_are_all_answered():
    slow = compile_pattern(r"^(?!x)(a|aa)+\1$")

    def search(_: int) -> str:
        try:
            slow.search("a" * 60 + "!")
        except SlowPattern as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(8) as pool:
        assert all("was stopped" in found for found in pool.map(search, range(8)))
    assert slow.search("aaa") is not None


def test_a_killed_helper_is_replaced():
    processes = PatternProcesses()
    try:
        found = processes("regex", "(?=a)(a)", "ba", 0.5)
        (helper,) = processes.idle
        helper.kill()
        helper.wait()
        assert processes("regex", "(?=a)(a)", "ba", 0.5).spans == found.spans == (1, 2, 1, 2)
    finally:
        processes.close()


def test_a_forked_process_has_helpers_of_its_own():
    run_pattern("regex", "(?=a)a", "a", 0.5)
    assert run_pattern.idle
    child = os.fork()
    if child == 0:
        os._exit(len(run_pattern.idle))
    assert os.waitpid(child, 0)[1] == 0


def test_a_helper_sees_no_variables(monkeypatch):
    monkeypatch.setenv("EVALHUB_SECRET_KEY", "not for patterns")
    processes = PatternProcesses()
    try:
        processes("regex", "(?=a)a", "a", 0.5)
        (helper,) = processes.idle
        assert b"EVALHUB" not in Path(f"/proc/{helper.pid}/environ").read_bytes()
    finally:
        processes.close()


def test_names_in_a_json_path_take_linear_time():
    def judge(number):
        gate = CommandJsonPath(command="true", path='$."' + "[," * number + '"', assertion="exists")
        gate.judge_output("{}")

    assert_linear_time(judge, 225, 900)


def test_a_long_json_path_is_refused():
    with pytest.raises(BadJsonPath, match="2000 are allowed"):
        check_json_path("$" + ".a" * 1001)


@pytest.mark.parametrize("line", ["[" + " " * 20_000, " " * 20_000 + "[", "a" * 20_000, "[a" * 10_000])
def test_lines_of_a_toml_file_take_linear_time(line):
    def read(line):
        read_toml(f"text = '''\n{line}\n'''\n".encode(), "settings.toml")

    assert_linear_time(read, quarter(line), line)

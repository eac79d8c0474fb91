"""What compares processor times passes linear work on a busy machine and fails quadratic work on any."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.linear_time import FLOOR, assert_linear_time, processor_seconds, quarter

TURNS_OF_A_LOOP = 1 << 21
BUSY = "print(flush=True)\nwhile True: sum(range(10_000))"


def linear(size: int) -> None:
    for _ in range(size):
        pass


def quadratic(side: int) -> None:
    linear(side * side)


@pytest.fixture(params=["quiet", pytest.param("busy", marks=pytest.mark.slow)])
def machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give this machine alone, or with three times as many processes at work as it has processors."""
    number = 3 * (os.cpu_count() or 1) if request.param == "busy" else 0
    others = [
        subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, start_new_session=True)
        for _ in range(number)
    ]
    try:
        for other in others:
            assert other.stdout and other.stdout.readline()
        yield
    finally:
        for other in others:
            other.kill()
            other.communicate()


@pytest.mark.usefixtures("machine")
def test_linear_work_passes():
    assert_linear_time(linear, TURNS_OF_A_LOOP, 4 * TURNS_OF_A_LOOP)


@pytest.mark.usefixtures("machine")
def test_sorting_passes():
    assert_linear_time(
        lambda size: sorted(range(size), key=lambda number: number * 7919 % size), 50_000, 200_000
    )


@pytest.mark.usefixtures("machine")
def test_quadratic_work_fails():
    with pytest.raises(
        AssertionError, match=r"^Four times the input took .* times as long; 9 times is allowed"
    ):
        assert_linear_time(quadratic, 700, 2_800)


def test_a_slow_first_turn_hides_nothing():
    turns: list[int] = []

    def quadratic_after_imports(side: int) -> None:
        linear(0 if turns else 5 * TURNS_OF_A_LOOP)
        turns.append(side)
        quadratic(side)

    with pytest.raises(AssertionError, match="times as long"):
        assert_linear_time(quadratic_after_imports, 700, 2_800)


def test_what_is_quick_however_it_grows_passes_at_once():
    turns: list[int] = []

    def quick(side: int) -> None:
        turns.append(side)
        quadratic(side)

    assert_linear_time(quick, 50, 200)
    assert processor_seconds(quadratic, 200) < FLOOR
    assert turns == [50, 50, 200]


def test_a_quarter_begins_and_ends_as_before():
    assert quarter("<" + "a" * 30 + ">") == "<aaaaaa>"

"""The pure parts: cases of tables are marked, for a pass of their own that is over at once."""

from __future__ import annotations

import gc

import pytest

HERE = "tests/evaluators/"

# What is imported and collected stays to the end, so looking through it for garbage is in vain.
gc.disable()


def is_case(item: pytest.Item) -> bool:
    """Tell what is neither a property over many examples, a simulation, nor given what is made to take long."""
    searched = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return not searched and not any(
        item.get_closest_marker(name) for name in ("hostile", "simulation", "slow", "sampled")
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(HERE) and is_case(item):
            item.add_marker(pytest.mark.table)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _patterns_in_processes() -> None:
    """Run look-around as evalhub does, in a process that can be killed."""
    from evaluators.patterns import set_runner
    from runs.sandbox.pattern_processes import run_pattern

    set_runner(run_pattern)

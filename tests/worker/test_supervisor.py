"""Services whose supervisor is killed while they start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from evalhub.supervisor import tie_to

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux'")


@pytest.fixture
def handler() -> Iterator[None]:
    """Handle SIGTERM, as the supervisor does."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    yield
    signal.signal(signal.SIGTERM, before)


def ended(parent: int, *, killed: bool = False) -> int:
    """Return the exit code of a service of this parent, which is perhaps killed before the program runs."""

    def prepare() -> None:
        tie_to(parent)
        if killed:
            signal.raise_signal(signal.SIGTERM)

    return subprocess.run(["true"], preexec_fn=prepare, check=False).returncode


def test_a_service_starts_while_its_supervisor_lives(handler: None) -> None:
    assert ended(os.getpid()) == 0


def test_it_does_not_start_when_its_supervisor_is_dead(handler: None) -> None:
    assert ended(os.getppid()) == 1


def test_a_signal_ends_a_service_before_its_program_runs(handler: None) -> None:
    assert ended(os.getpid(), killed=True) == -signal.SIGTERM

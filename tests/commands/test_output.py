"""Commands whose output is closed, full or cut short, and those that are interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.embedded_data import make_data

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return what starts a command as people do, with a data directory of its own."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "EVALHUB_BROKER_URL")
    }
    env = {
        **inherited,
        "DJANGO_SETTINGS_MODULE": "evalhub.settings",
        "EVALHUB_DATA": str(make_data(tmp_path / "data")),
    }
    started: list[subprocess.Popen[str]] = []

    def started_with(*words: str, **streams: Any) -> subprocess.Popen[str]:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        process = subprocess.Popen(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=env, text=True, **streams
        )
        started.append(process)
        return process

    yield started_with
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("path", "code"), [("README.md", 2), ("scenarios/examples/git-basics", 0)])
def test_a_reader_who_leaves_early_changes_nothing(start: Start, path: str, code: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = start("check_scenarios", path, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (code, "")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("words", [("help",), ("migrate", "--help"), ("showmigrations",)])
def test_nor_does_one_of_djangos_own_commands(start: Start, words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*words, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


@pytest.mark.slow
def test_a_full_output_device_is_reported(start: Start) -> None:
    with Path("/dev/full").open("w") as full:
        process = start("check_scenarios", "scenarios/examples/git-basics", stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err == "Can't write the output: No space left on device. Redirect it elsewhere.\n"


@pytest.mark.slow
def test_a_closed_output_is_none(start: Start) -> None:
    process = start(
        "check_scenarios", "scenarios/examples/git-basics", stdout=None, preexec_fn=lambda: os.close(1)
    )
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


def test_an_interrupted_command_says_so(start: Start, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    os.mkfifo(request)
    process = start("grade", str(request))
    # Opened once the command reads at the other end.
    with request.open("w"):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "Interrupted.\n")

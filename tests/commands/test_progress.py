"""`run_scenarios` shows its progress on standard error: lines elsewhere, a bar on a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from runs.exchange.exports.progress import Totals, totals_line
from tests.commands.calling import call
from tests.embedded_data import make_data

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).resolve().parents[2]
SUITE = "name: plain\ndescription: Nothing to do.\ntask: {prompt: Say hello.}\nevaluation: {gates: []}\n"
TARGETS = 'targets: [{name: m, provider: cli, workers: 2, command_template: "sleep 0.5; echo hello"}]\n'


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    (tmp_path / "plain.yaml").write_text(SUITE)
    (tmp_path / "targets.yaml").write_text(TARGETS)
    files = [str(tmp_path / "plain.yaml"), "--targets", str(tmp_path / "targets.yaml")]
    return ["run_scenarios", *files, "--target", "m", "--trials", "3", "--now"]


@pytest.mark.django_db(transaction=True)
def test_without_a_terminal_each_finished_trial_is_a_line(arguments: list[str]) -> None:
    address, *lines = call(*arguments).err.splitlines()
    assert re.fullmatch(r"run \d+: plain v1 on m: http://127\.0\.0\.1:8000/runs/\d+/", address)
    assert [line.split()[0] for line in lines] == ["1/3", "2/3", "3/3"]
    trials = {re.sub(r"^\S+ | \d+\.\d s$", "", line) for line in lines}
    assert trials == {"pass plain", "pass plain #2", "pass plain #3"}


@pytest.mark.django_db(transaction=True)
def test_quiet_prints_no_progress(arguments: list[str]) -> None:
    assert call(*arguments, "--trials", "1", "--quiet").err == ""


@pytest.mark.slow
def test_on_a_terminal_a_bar_shows_the_running_trials(tmp_path: Path, arguments: list[str]) -> None:
    ours, theirs = pty.openpty()
    left = ("DATABASE_URL", "EVALHUB_BROKER_URL", "DJANGO_SETTINGS_MODULE", "NO_COLOR")
    env = {name: value for name, value in os.environ.items() if name not in left}
    env |= {"EVALHUB_DATA": str(make_data(tmp_path / "data")), "TERM": "xterm", "COLUMNS": "100"}
    argv = [sys.executable, "manage.py", *arguments, "--verbose"]
    process = subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while block := os.read(ours, 65_536):
            shown += block
    except OSError:
        # Linux ends a terminal's output with an error.
        pass
    assert process.wait(60) == 0
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert "0/3 · 0 passed" in text
    assert "1/3 ✓ plain" in text
    assert re.search(r"^  plain #3", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("totals", "seconds", "expected"),
    [
        (Totals(4, 0, 0, 0, 0, None), 1.0, "0/4 · 0 passed"),
        (Totals(10, 3, 1, 1, 0, 0.5), 10.0, "5/10 · 3 passed · 1 failed · 1 error · $0.50 · 10 s left"),
        (Totals(100, 1, 0, 0, 0, None), 2.0, "1/100 · 1 passed · 3 min 18 s left"),
        (Totals(2, 2, 0, 0, 0, None), 9.0, "2/2 · 2 passed"),
    ],
)
def test_the_line_has_counts_rate_cost_and_time_left(totals: Totals, seconds: float, expected: str) -> None:
    assert totals_line(totals, seconds) == expected

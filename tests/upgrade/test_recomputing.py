"""A data folder with many runs by the rules of 0.1.0 is computed again: with progress, after a kill, twice the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.upgrade.many_runs import FIRST, OLD_COST

ROOT = Path(__file__).parents[2]
RUNS = 120
"""Enough to be killed between two of the lines that it prints, one for each 100 runs."""
NEW_COST = 2.9
"""0.1, 0.9 and 0.05 million tokens at 10, 1 and 20 dollars."""


def environment(folder: Path) -> dict[str, str]:
    own = {"EVALHUB_DATA": str(folder), "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3"}
    return {**os.environ, **own, "DJANGO_SETTINGS_MODULE": "evalhub.settings"}


def ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=True,
    )


def figures(folder: Path) -> Any:
    return json.loads(ran(folder, "-m", "tests.upgrade.many_runs", "figures").stdout)


def kill_at(folder: Path, sentence: str) -> None:
    """Recompute and kill the command as soon as it prints a sentence."""
    words = [sys.executable, "manage.py", "recompute"]
    with subprocess.Popen(
        words, cwd=ROOT, env=environment(folder), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        for line in process.stderr or ():
            if sentence in line:
                process.kill()
                return
    pytest.fail(f"{sentence!r} was never printed")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_runs_by_older_rules_are_computed_again(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    ran(whole, "-m", "tests.upgrade.many_runs", str(RUNS))
    shutil.copytree(whole, killed)

    done = ran(whole, "manage.py", "recompute")
    assert f"Computing costs again: 100 of {RUNS} runs." in done.stderr
    assert f"Computing costs again: {RUNS} of {RUNS} runs." in done.stderr
    assert f"{RUNS:,} trials had no stored output to compute from." in done.stdout
    trials, runs, _ = after = figures(whole)
    costs = {key: cost for key, cost, *_ in trials if key >= 2 * FIRST}
    assert [costs[key] for key in costs if key % 2 == 0] == pytest.approx([NEW_COST] * RUNS)
    assert {costs[key] for key in costs if key % 2} == {OLD_COST}
    sums = [cost for key, cost, *_ in runs if key >= FIRST]
    assert len(sums) == RUNS and sums == pytest.approx([NEW_COST + OLD_COST] * RUNS)

    kill_at(killed, "Counting commands again: 100 of")
    kill_at(killed, "Computing costs again: 100 of")
    again = ran(killed, "manage.py", "recompute", "--json")
    assert 0 < json.loads(again.stdout)["costs"]["runs"] <= RUNS - 100 + 10
    assert figures(killed) == after

    last = json.loads(ran(whole, "manage.py", "recompute", "--json").stdout)
    assert (last["commands"]["runs"], last["costs"]["runs"]) == (0, 0)
    assert figures(whole) == after

"""Commands on a database that is missing, of an earlier release, or away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLES = """
from tests.upgrade.history import migrate_runs_to
migrate_runs_to({name!r})
"""
"""Makes the database of an earlier release."""


def manage(data: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "EVALHUB_BROKER_URL")
    }
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**inherited, "DJANGO_SETTINGS_MODULE": "evalhub.settings", "EVALHUB_DATA": str(data), **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "before",
    [
        pytest.param((), id="none"),
        pytest.param(
            ("shell", "--no-imports", "-c", TABLES.format(name="0060_looks")),
            id="0.1.1",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_command_makes_and_upgrades_the_embedded_database(tmp_path: Path, before: tuple[str, ...]) -> None:
    if before:
        assert manage(tmp_path, *before).returncode == 0
    done = manage(tmp_path, "show_run", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("There is no run 1.")


@pytest.mark.slow
def test_a_command_refuses_a_database_before_0_1_1(tmp_path: Path) -> None:
    assert manage(tmp_path, "shell", "--no-imports", "-c", TABLES.format(name="0059_lines")).returncode == 0
    done = manage(tmp_path, "show_run", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "This database was written before evalhub 0.1.1. Upgrade it with 0.1.1 first" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_database_that_is_away_is_one_sentence(tmp_path: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    done = manage(
        tmp_path,
        "show_run",
        "1",
        DATABASE_URL=url,
        EVALHUB_SECRET_KEY="x" * 60,
        EVALHUB_BROKER_URL="redis://127.0.0.1:1/0",
    )
    assert done.returncode == 2
    assert done.stderr.startswith("The database cannot be used:")
    assert "Traceback" not in done.stderr

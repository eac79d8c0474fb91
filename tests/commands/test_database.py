"""Commands on a database that is missing, of an earlier release, or away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EARLIER = """
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
recorder = MigrationRecorder(connection)
recorder.ensure_schema()
recorder.record_applied("runs", "0060_looks")
"""
"""Records what 0.1.1 had applied."""


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


def test_a_command_makes_the_embedded_database(tmp_path: Path) -> None:
    done = manage(tmp_path, "show_run", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("There is no run 1.")


@pytest.mark.slow
def test_a_command_refuses_a_database_before_0_1_2(tmp_path: Path) -> None:
    assert manage(tmp_path, "shell", "--no-imports", "-c", EARLIER).returncode == 0
    done = manage(tmp_path, "show_run", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "This database was written before evalhub 0.1.2. Upgrade it with 0.1.2 first" in done.stderr
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

"""Data directories whose database is migrated and empty, because migrating one takes longer than most commands."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATABASE = "evalhub.sqlite3"


def make_data(folder: Path) -> Path:
    """Make a data directory with an empty database of this release; return it."""
    folder.mkdir(parents=True, exist_ok=True)
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    # All processes of a run share it; the one that migrated it removes it at the end.
    shared = Path(tempfile.gettempdir()) / f"evalhub-migrated-{run}"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / DATABASE).exists():
            _migrate(shared)
        shutil.copy(shared / DATABASE, folder / DATABASE)
    return folder


def _migrate(folder: Path) -> None:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("EVALHUB_", "DATABASE_"))
    }
    env = {**kept, "DJANGO_SETTINGS_MODULE": "evalhub.settings", "EVALHUB_DATA": str(folder)}
    argv = [sys.executable, str(ROOT / "manage.py"), "migrate", "-v0"]
    subprocess.run(argv, cwd=folder, env=env, check=True, capture_output=True)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

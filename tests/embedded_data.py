"""Data directories whose database is migrated and empty, because migrating one takes longer than most commands."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATABASE = "evalhub.sqlite3"


def make_data(folder: Path) -> Path:
    """Make a data directory with an empty database of this release; return it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(_migrated() / DATABASE, folder / DATABASE)
    return folder


@cache
def _migrated() -> Path:
    """Return the folder of the database that tests copy; each process makes it once."""
    folder = Path(tempfile.mkdtemp(prefix="evalhub-migrated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("EVALHUB_", "DATABASE_"))
    }
    env = {**kept, "DJANGO_SETTINGS_MODULE": "evalhub.settings", "EVALHUB_DATA": str(folder)}
    argv = [sys.executable, str(ROOT / "manage.py"), "migrate", "-v0"]
    subprocess.run(argv, cwd=folder, env=env, check=True, capture_output=True)
    return folder

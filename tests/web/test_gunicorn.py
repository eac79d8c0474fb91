"""What gunicorn does beside its command line."""

from __future__ import annotations

import subprocess
import sys

from django.conf import settings

READY = """
import gc, runpy
runpy.run_path("gunicorn.conf.py")["when_ready"](None)
print(gc.get_freeze_count() > 1000)
"""


def test_what_is_loaded_is_frozen_before_processes_fork() -> None:
    argv = [sys.executable, "-c", READY]
    done = subprocess.run(argv, cwd=settings.BASE_DIR, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"

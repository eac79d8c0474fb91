"""What gunicorn does beside its command line."""

from __future__ import annotations

import subprocess
import sys

from django.conf import settings

from evalhub.garbage import NEW_OBJECTS

READY = """
import gc, runpy
runpy.run_path("gunicorn.conf.py")["when_ready"](None)
print(gc.get_freeze_count() > 1000, gc.get_threshold()[0])
"""


def test_loaded_modules_are_never_collected_and_the_rest_rarely() -> None:
    argv = [sys.executable, "-c", READY]
    done = subprocess.run(argv, cwd=settings.BASE_DIR, capture_output=True, text=True, check=True)
    assert done.stdout == f"True {NEW_OBJECTS}\n"

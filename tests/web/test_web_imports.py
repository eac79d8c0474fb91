"""What a web process does not load before it is needed: some libraries are larger than all of evalhub."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SERVE = """
import sys
from django.urls import get_resolver
from evalhub.wsgi import application
get_resolver().url_patterns
large = {"litellm", "scipy", "numpy", "ruptures", "redis", "celery", "rich", "rapidfuzz"}
print(*sorted(large & set(sys.modules)))
"""


def test_a_web_process_starts_without_large_libraries(tmp_path):
    env = {"EVALHUB_DATA": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", SERVE], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []

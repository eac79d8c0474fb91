"""What a web process does not carry: the libraries of models, statistics and figures weigh more than all of evalhub."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVE = """
import sys
from django.urls import get_resolver
from evalhub.wsgi import application
get_resolver().url_patterns
print(*sorted({"litellm", "scipy", "plotly", "numpy", "ruptures"} & set(sys.modules)))
"""


def test_a_web_process_imports_no_models_statistics_or_figures(tmp_path):
    env = {"EVALHUB_DATA": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", SERVE], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []

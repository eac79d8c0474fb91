"""litellm costs seconds and hundreds of megabytes: only a process that asks a model may pay for it.

What else a run does not meet stays unloaded as well, for a command's start is mostly loading.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

UNMET = (
    "jsonpath_ng",
    "json_repair",
    "regex",
    "scenarios.formats.tool_forge.files",
    "runs.providers.claude_code",
    "runs.providers.codex",
    "runs.providers.http",
    "runs.providers.language_model",
)
EVERYTHING = """
import django; django.setup()
import evalhub.urls, evalhub.celery, runs.tasks, runs.batching, runs.launching, runs.providers
from django.urls import get_resolver; get_resolver().url_patterns
"""
MOCK_RUN = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from pathlib import Path
import tempfile
folder = Path(tempfile.mkdtemp())
(folder / "targets.yaml").write_text("targets: [{name: local, provider: mock, response: hello}]")
(folder / "case.yaml").write_text(
    "evalcases:\\n  - id: one\\n    expected_outcome: A greeting.\\n    evaluators: [{name: t, type: tool_trajectory,"
    " mode: any_order, minimums: {x: 1}}]\\n    input_messages: [{role: user, content: Say hello.}]\\n"
)
try:
    call_command("run_scenarios", str(folder / "case.yaml"), targets=str(folder / "targets.yaml"), now=True)
except SystemExit as ended:
    assert ended.code == 1, ended.code
from runs.models import Trial
assert Trial.objects.get().answer == "hello"
"""


@pytest.mark.parametrize(
    "code", [pytest.param(EVERYTHING, id="web and worker"), pytest.param(MOCK_RUN, id="a mock run")]
)
def test_litellm_is_not_imported_where_no_model_is_asked(code):
    ended = _run(f"{code}\nimport sys\nassert 'litellm' not in sys.modules")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_mock_run_loads_no_reader_and_no_provider_that_it_does_not_meet():
    ended = _run(f"{MOCK_RUN}\nimport sys\nprint([name for name in {UNMET} if name in sys.modules])")
    assert ended.stdout.splitlines()[-1:] == ["[]"], ended.stdout + ended.stderr


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "/usr/bin:/bin", "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

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
    "scenarios.formats.tool_forge.case_files",
    "runs.targets.agents.claude_code",
    "runs.targets.agents.codex",
    "runs.targets.language_models.http",
    "runs.targets.language_models.language_model",
)
EVERYTHING = """
import django; django.setup()
import evalhub.urls, evalhub.celery, runs.tasks, runs.engine.batches, runs.launch.inputs, runs.targets.providers.registry
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
FIRST_REQUEST = """
import django; django.setup()
import time
from runs.targets.providers.access import resolve_access
from runs.targets.language_models.completion import Asking
from runs.targets.providers.retry import TimeLimit
from tests.model_server import serving
from tests.runs.targets.providers.model_targets import LOOPBACK, target_of
with serving() as server:
    asking = Asking(resolve_access(target_of(server), outbound=LOOPBACK), TimeLimit(20.0))
    began = time.monotonic()
    asking.repeated(lambda litellm: None)
    print(time.monotonic() - began, asking.patience.passed)
"""


@pytest.fixture(scope="module")
def loaded_by_a_mock_run() -> set[str]:
    """Return the modules that a process has loaded after a run against a mock."""
    return _loaded(MOCK_RUN)


def test_litellm_is_not_imported_for_pages_and_by_a_worker():
    assert "litellm" not in _loaded(EVERYTHING)


@pytest.mark.slow
def test_litellm_is_not_imported_where_no_model_is_asked(loaded_by_a_mock_run: set[str]):
    assert "litellm" not in loaded_by_a_mock_run


@pytest.mark.slow
def test_a_mock_run_loads_no_unused_reader_or_provider(loaded_by_a_mock_run: set[str]):
    assert loaded_by_a_mock_run.isdisjoint(UNMET)


@pytest.mark.slow
def test_the_import_does_not_count_as_the_models_time():
    whole, counted = map(float, _printed(FIRST_REQUEST).split())
    assert counted < whole / 10


def _loaded(code: str) -> set[str]:
    return set(_printed(f"{code}\nimport sys\nprint(*sys.modules)").split())


def _printed(code: str) -> str:
    """Return the last line that a process of this code prints."""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "/usr/bin:/bin", "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.splitlines()[-1]

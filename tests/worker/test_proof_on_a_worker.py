"""A worker makes a proof that somebody requested."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.worker.stand import ROOT, Stand

pytestmark = [pytest.mark.slow, pytest.mark.one_database]

REQUEST = """
import django; django.setup()
from runs.suites.proofs_api import request_proof
from scenarios.models import SuiteVersion
request_proof(SuiteVersion.objects.select_related("suite__project").get(), by=None)
"""


def test_a_worker_proves_a_suite_on_request(stand: Stand):
    stand.manage("import_scenarios", "scenarios/examples/stock")
    stand.start_worker(threads=1)
    subprocess.run([sys.executable, "-c", REQUEST], cwd=ROOT, env=stand.env, check=True, timeout=30)
    stand.until(lambda: bool(stand.rows("SELECT id FROM runs_suiteproof WHERE finished IS NOT NULL")), 60)
    assert stand.rows("SELECT DISTINCT seal FROM runs_scenarioproof") == [("proved",)]
    assert stand.one("SELECT count(*) FROM runs_scenarioproof") == 3

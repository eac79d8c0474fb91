"""Databases of earlier versions keep their data and show it, on every database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WRITTEN = json.loads(Path(__file__).with_name("release_0_1_2.json").read_text())
"""What 0.1.2 stored."""
NOWHERE = "/p/default/nowhere/"
"""The page that says that there is none."""
EARLIER = """
import django
django.setup()
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
recorder = MigrationRecorder(connection)
recorder.ensure_schema()
recorder.record_applied("teams", "0012_confirmation_limit")
recorder.record_applied("scenarios", "0006_suite_sources")
recorder.record_applied("runs", "0060_looks")
"""
"""Record what 0.1.1 had applied."""


@pytest.fixture
def empty_database(tmp_path, django_db_blocker) -> Iterator[str]:
    """Give the address of a database without tables, of the kind that these tests run on."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{tmp_path}/upgrade.sqlite3"
        return
    name = f"upgrade_{uuid4().hex}"
    base, _, options = os.environ["DATABASE_URL"].partition("?")
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        yield f"{base.rpartition('/')[0]}/{name}?{options}"
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.slow
@pytest.mark.database
def test_a_folder_of_the_last_release_keeps_verdicts_decisions_and_pages(empty_database, tmp_path):
    environment = {**os.environ, "DATABASE_URL": empty_database}
    words = [sys.executable, "-m", "tests.upgrade", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    after = json.loads(done.stdout.splitlines()[-1])
    pages = after.pop("pages")
    assert after == WRITTEN
    assert len(pages) > 90
    assert {address: status for address, status in pages.items() if status != 200} == {NOWHERE: 404}


@pytest.mark.slow
@pytest.mark.database
def test_a_new_database_can_be_taken_back(empty_database):
    def migrate(*words: str) -> None:
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "-v0", *words],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": empty_database},
            check=True,
        )

    migrate()
    for app in ("runs", "scenarios", "teams"):
        migrate(app, "zero")
    migrate()


@pytest.mark.database
def test_a_database_before_0_1_2_is_refused_in_a_sentence(empty_database):
    environment = {**os.environ, "DATABASE_URL": empty_database, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    subprocess.run([sys.executable, "-c", EARLIER], cwd=ROOT, env=environment, check=True)
    words = [sys.executable, "manage.py", "migrate", "-v0"]
    refused = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.strip() == (
        "CommandError: This database was written before evalhub 0.1.2. Upgrade it with 0.1.2 first, which repairs what "
        "older releases stored."
    )

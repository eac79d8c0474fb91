"""Databases of earlier versions keep their data and show it, on every database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from evaluators.tool_use.interaction import RULES_VERSION
from tests.upgrade.tables import tables

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RUNS = {
    "1": ["finished", "fail", 5, 10],
    "2": ["finished", "pass", 15, 0],
    "3": ["finished", "fail", 3, 6],
    "4": ["finished", "pass", 9, 0],
    "5": ["finished", "pass", 3, 0],
    "6": ["finished", "fail", 0, 3],
    "7": ["finished", "pass", 20, 0],
    "8": ["finished", "fail", 15, 5],
    "9": ["finished", "fail", 6, 3],
    "10": ["finished", "pass", 9, 0],
}
"""State, outcome, passed and failed of each run, as 0.1.1 stored them."""


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


def upgrade(address: str, *words: str) -> dict[str, Any]:
    environment = {**os.environ, "DATABASE_URL": address}
    ended = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    document: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return document


@pytest.mark.slow
@pytest.mark.parametrize("version", ["release_0_1_1"])
def test_an_upgrade_keeps_runs_and_every_page(version, empty_database, db):
    after = upgrade(empty_database, "tests.upgrade", version)
    assert after["runs"] == RUNS
    assert after["trials"] == {"pass": 85, "fail": 27}
    assert len(after["pages"]) > 90
    assert {address: status for address, status in after["pages"].items() if status != 200} == {}
    recounted = after["recounted"]["commands"]
    assert recounted["rules"] == RULES_VERSION
    new = tables()
    assert {name for name, table in after["tables"].items() if table != new.get(name)} == set()
    assert new.keys() - after["tables"].keys() == set()


LOST = "Its worker was lost."
"""How work ends whose worker was stopped for the upgrade."""


@pytest.mark.slow
@pytest.mark.database
def test_open_work_of_each_kind_ends_once(empty_database):
    after = upgrade(empty_database, "tests.upgrade.open_work")
    assert after["jobs"] == {
        "proof": 2,
        "reassessment": 2,
        "grading": 2,
        "check": 2,
        "try": 2,
        "batch": 1,
        "channel": 1,
    }
    assert after["ends"] == {
        "proofs": ["", f"{LOST} Prove the suite again."],
        "reassessments": ["", f"{LOST} Request it again."],
        "gradings": [None, "The worker that graded it was lost. Send it again."],
        "checks": ["", f"{LOST} Check the target again."],
        "tries": [None, f"{LOST} Try the target again."],
        "batches": ["failed"],
        "deliveries": ["sent", "failed"],
    }
    assert (after["left"], after["sent"]) == (0, 1)


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


EARLIER = """
import django
django.setup()
from tests.upgrade.history import migrate_runs_to
migrate_runs_to("0059_lines")
"""
"""Makes the tables of a release before 0.1.1."""


@pytest.mark.database
def test_a_database_before_0_1_1_is_refused_in_a_sentence(empty_database):
    environment = {**os.environ, "DATABASE_URL": empty_database, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    subprocess.run([sys.executable, "-c", EARLIER], cwd=ROOT, env=environment, check=True)
    words = [sys.executable, "manage.py", "migrate", "-v0"]
    refused = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.strip() == (
        "CommandError: This database was written before evalhub 0.1.1. Upgrade it with 0.1.1 first, which repairs what "
        "older releases stored."
    )

"""What trends read stays as much, however long a suite's history is."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.compare.api import trend
from runs.models import Measure
from runs.results.measures import label_of
from tests.builders import make_run
from tests.query_plans import query_plan

pytestmark = pytest.mark.django_db


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL chooses by what the tables hold.")
@pytest.mark.parametrize("target", ["", "claude"])
def test_the_newest_runs_are_found_in_their_order(version, target):
    make_run(version)
    with CaptureQueriesContext(connection) as asked:
        trend(version.suite, "trial/pass", target=target)
    [runs] = [each["sql"] for each in asked if 'FROM "runs_run"' in each["sql"]]
    assert not [step for step in query_plan(runs) if "ORDER BY" in step]


@pytest.mark.parametrize(
    ("layer", "name", "label"),
    [
        ("trial", "pass", "Pass rate"),
        ("interaction", "retry_count", "Retry count"),
        ("assertions", "maxLatencyMs", "maxLatencyMs"),
        ("gates", "git_log", "Git log"),
        ("evaluators", "JSON shape", "JSON shape"),
    ],
)
def test_measures_are_called_as_their_files_spell_them(layer, name, label):
    assert label_of(Measure(layer=layer, name=name)) == label

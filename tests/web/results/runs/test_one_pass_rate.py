"""A run has one pass rate, the mean over its scenarios, wherever it is shown; counts of trials stay counts."""

from __future__ import annotations

import csv
import io

import pytest

from evalhub.teams.access import default_project
from runs.compare.line import DrawnRun
from runs.compare.shown_changes import shown_reference
from runs.exchange.exports.document import run_json
from runs.exchange.exports.files import list_outputs
from runs.exchange.exports.summary_markdown import run_summary
from runs.models import Run
from tests.builders import make_compared, make_guidance, make_run, make_suite
from tests.web.results.runs.pages import ADDRESS, page
from tests.web.screen import main_of

pytestmark = pytest.mark.one_database
UNEQUAL = {"create": ["pass"] * 16, "export": ["pass", *["fail"] * 4]}
"""17 of 21 trials pass, which is 81 %; the mean of 100 % and 20 % is 60 %."""


@pytest.fixture
def run(version):
    """Return a run like the ones before it, whose scenarios had unequal numbers of trials."""
    guidance = make_guidance(version.suite)
    for _ in range(6):
        made = make_compared(version, UNEQUAL, guidance=guidance)
    return made


def test_pages_show_the_mean_over_scenarios(signed_in, run):
    client = signed_in()
    first = page(client, run)
    assert "pass rate 60 %, expected" in first and "81 %" not in first.text
    assert main_of(client.get(ADDRESS)).table("Runs").rows[0].cell("Passed").text.startswith("60 % 17/21")
    for address in ("/p/tools/", "/p/tools/suites/", f"/p/tools/guidance/{run.guidance_id}/"):
        shown = main_of(client.get(address)).text
        assert "60 %" in shown, address
        assert "81 %" not in shown, address


def test_exports_and_the_reference_have_it(signed_in, run):
    (row, *_) = csv.DictReader(io.StringIO(signed_in().get(f"{ADDRESS}?format=csv").getvalue().decode()))
    assert (float(row["pass_rate"]), row["passed"]) == (0.6, "17")
    assert float(row["pass_rate_low"]) < 0.6 < float(row["pass_rate_high"])
    document = run_json(run)
    assert (document["pass_rate"], list_outputs([document], 1)["pass_rate"]) == (0.6, "0.6000")
    side = shown_reference(run)
    assert {each.pass_rate for each in side.runs} == {0.6}
    text = run_summary(run)
    assert "| 60 % | 60 % |" in text.replace("\xa0", " ") and "17 of 21 trials passed" in text


@pytest.mark.django_db
def test_a_run_that_measured_nothing_has_none():
    version = make_suite(default_project(), ["create"])
    assert make_compared(version, {"create": "error"}).pass_rate is None
    assert make_run(version, state="running", passed=3, failed=1).pass_rate is None
    assert DrawnRun(3, 1, 0, "", "").rate.share == 0.75
    assert run_json(Run.objects.earliest("pk"))["pass_rate"] is None

"""A run's page shows the scenarios that ran again."""

from __future__ import annotations

import pytest

from tests.builders import make_suite, make_target
from tests.runs.carrying import NO_GATES, passed
from tests.runs.looking import KEYS, carry, failing, ran, requested
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


@pytest.fixture
def version(project):
    make_target(project, provider="cli", definition={"name": "local", "provider": "cli"})
    return make_suite(project, KEYS, **NO_GATES)


def shown(client, run, query=""):
    return parse(client.get(f"/p/tools/runs/{run.pk}/{query}"))


def test_each_scenario_that_ran_again_has_a_row_and_its_fresh_trials_a_mark(signed_in, version):
    ran(version, failing(), trials=6)
    client = signed_in("viewer")
    assert "Run again" not in shown(client, ran(version, failing(), trials=3)).text
    run = ran(version, failing("add"), trials=3)
    (row,) = shown(client, run).table("Run again").rows
    assert row.text == (
        "add 9/9 0/3 0/6 Failed tonight, and 6 of 6 again Compared with 9 earlier trials; from 15 on, more is found."
    )
    text = shown(client, run, "?open=add").region("Scenarios and trials").text
    assert text.count("run again, not counted") == 6
    assert "15 trials" in text
    trial = run.trial_set.filter(is_retest=True).first()
    assert "run again, in no rate" in parse(client.get(f"/p/tools/trials/{trial.pk}/")).text


def test_an_open_run_says_what_runs_again_and_what_passes_again_is_flaky(signed_in, version):
    ran(version, failing(), trials=6)
    run, client = requested(version, trials=3).runs.get(), signed_in("viewer")
    carry([run], failing("add"), most=15)
    carry([run], lambda *_: passed(), most=1)
    page = shown(client, run)
    assert "Runs again, 6 fresh trials" in page.table("Run again").rows[0].text
    progress = page.region("Progress").text
    assert "15 of 15 trials finished" in progress
    assert "Scenarios that look worse run again." in progress
    carry([run], lambda *_: passed())
    page = shown(client, run)
    assert "Passes again, 6 of 6" in page.table("Run again").rows[0].text
    assert "flaky" in page.table("Scenarios").rows[0].text

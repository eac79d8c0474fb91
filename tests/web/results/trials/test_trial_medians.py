"""The measures of a trial beside its scenario's typical values."""

from __future__ import annotations

import pytest

from evaluators.tool_use.interaction import RULES_VERSION
from tests.builders import make_run, make_suite, make_target, make_trial
from tests.web.results.trials.pages import page

pytestmark = pytest.mark.one_database


def interaction(value):
    """Return what a trial keeps of layer 1 with this error rate; None is a trial without commands."""
    metrics = {"available": value is not None, "source": "events", "error_rate": value or 0.0}
    metrics |= {"total_commands": 20, "rules": RULES_VERSION}
    score = {"layer": "interaction", "name": "error_rate", "value": value, "passed": None}
    return {"scores": [score], "detail": {"interaction": metrics}}


def error_rates(client, trial):
    """Return a trial's error rate and the median of earlier trials, as its page shows them."""
    row = page(client, trial).table("Interaction").row("Error rate")
    return row.cell("This trial").text, row.cell("Earlier median").text


def test_a_measure_shows_the_median_of_earlier_trials(signed_in, project):
    version = make_suite(project, ("create", "export"))
    for value in (0.0, 0.25, 0.75):
        make_trial(make_run(version), "export", **interaction(value))
    trial = make_trial(make_run(version), "export", **interaction(1.0))
    make_trial(make_run(version), "export", **interaction(0.5))
    assert error_rates(signed_in(), trial) == ("100 %", "25 % 3 trials")


def test_the_median_covers_the_last_twenty_measured_trials(signed_in, run):
    for value in [0.9] * 5 + [0.1] * 11 + [None] * 5 + [0.3] * 4:
        make_trial(run, **interaction(value))
    assert error_rates(signed_in(), make_trial(run, **interaction(0.2))) == ("20 %", "10 % 15 trials")


def test_the_median_ignores_errors_and_unlike_trials(signed_in, project):
    version = make_suite(project, ("create", "export"))
    mine = make_run(version, branch="main")
    make_trial(mine, "create", **interaction(0.5))
    make_trial(mine, "create", outcome="error", **interaction(1.0))
    make_trial(mine, "create", outcome="", **interaction(1.0))
    make_trial(mine, "export", **interaction(1.0))
    for changes in ({"branch": "feature/x"}, {"target": make_target(project, "another")}):
        make_trial(make_run(version, **changes), "create", **interaction(1.0))
    trial = make_trial(make_run(version, target=mine.target), "create", **interaction(0.0))
    assert error_rates(signed_in(), trial) == ("0 %", "50 % 1 trial")


def test_a_scenarios_first_trial_has_no_median(signed_in, run):
    trial = make_trial(run, **interaction(0.5))
    text = page(signed_in(), trial)
    assert "no earlier trials" in text
    assert "Earlier median" not in text
    assert " 0 trials" not in text

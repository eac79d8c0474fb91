"""A run's page counts the trials whose agent changed what decides its gates; a trial's page says what."""

from __future__ import annotations

from tests.builders import close, make_run, make_trial
from tests.web.results.runs.pages import page
from tests.web.screen import main_of

SENTENCE = "The agent changed files that gates run or name: check.sh."


def test_a_run_leads_to_its_tampered_trials(signed_in, version):
    run = make_run(version)
    trial = make_trial(run, "create", detail={"integrity": [SENTENCE]})
    make_trial(run, "export")
    shown = page(signed_in(), close(run))
    assert "In 1 trial the agent changed what decides its gates:" in shown.text
    shown.link("create, trial 1")
    own = main_of(signed_in().get(f"/p/tools/trials/{trial.pk}/"))
    assert SENTENCE in own.text


def test_a_run_without_any_says_nothing(signed_in, version):
    run = make_run(version)
    make_trial(run, "create")
    assert "what decides its gates" not in page(signed_in(), close(run)).text

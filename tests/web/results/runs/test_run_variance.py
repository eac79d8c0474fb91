"""Where a run's variance comes from, on its page."""

from __future__ import annotations

import pytest

from runs.exchange.exports.document import run_document
from tests.builders import close, make_run, make_trial, score
from tests.web.results.runs.pages import page

pytestmark = pytest.mark.one_database


def judged(version, *trials):
    """Return a closed run of a scenario's trials, each with the scores of its judgings."""
    run = make_run(version)
    for key, judgings in trials:
        scores = [score("judge", "judging", each) for each in judgings]
        make_trial(run, key, scores=[score("judge", "judge", sum(judgings) / len(judgings), True), *scores])
    return close(run)


def test_the_judges_share_comes_with_advice(signed_in, version):
    repeated = [
        ("create", (0.1, 0.9)),
        ("create", (0.2, 0.8)),
        ("export", (0.9, 0.2)),
        ("export", (0.8, 0.1)),
    ]
    row = page(signed_in(), judged(version, *repeated)).table("Variance").row("Judge score")
    assert row.cell("Judge").text == "100 %"
    assert "100 % of the variance is the judge: judge three times before adding trials." in row
    assert "the estimate was negative and counts as 0" in row


def test_documents_hold_the_variance(version):
    run = judged(version, ("create", (0.1, 0.9)), ("create", (0.2, 0.8)), ("export", (0.9, 0.2)))
    found = {each["measure"]: each for each in run_document(run.pk)["run"]["variance"]}
    assert found["judge/judge"]["judge"] > 0.2
    assert found["trial/pass"]["judge"] is None
    assert run_document(make_run(version).pk)["run"]["variance"] == []


def test_one_judging_a_trial_is_named(signed_in, version):
    single = [("create", (0.1,)), ("create", (0.9,)), ("export", (0.4,)), ("export", (0.5,))]
    table = page(signed_in(), judged(version, *single)).table("Variance")
    assert "the agent's part includes the judge's" in table.row("Judge score")
    assert "Every value is the same." in table.row("Pass rate")


def test_without_repeats_the_page_says_what_is_missing(signed_in, version):
    region = page(signed_in(), judged(version, ("create", (0.5,)), ("export", (0.7,)))).region("Variance")
    assert "Run 2 or more to separate the agent from the scenario mix" in region

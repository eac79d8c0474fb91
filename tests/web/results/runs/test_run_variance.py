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


REPEATED = [
    ("create", (0.1, 0.9)),
    ("create", (0.2, 0.8)),
    ("export", (0.9, 0.2)),
    ("export", (0.8, 0.1)),
]


def test_the_largest_share_comes_with_advice(signed_in, version):
    run, client = judged(version, *REPEATED), signed_in()
    shown = page(client, run)
    # Every trial passed, so the first measure that varies is the judge's.
    assert "Judge score: 100 % of the variance is the judge: judge three times before adding trials." in shown
    text = client.get(f"/p/tools/runs/{run.pk}/{shown.link('Variance, CSV').address}").getvalue().decode()
    assert text.splitlines()[0] == "measure,scenario_mix,agent,judge,negative_estimates"
    assert [line.split(",")[0] for line in text.splitlines()[1:]] == ["trial/pass", "judge/judge"]


def test_documents_hold_the_variance(version):
    run = judged(version, ("create", (0.1, 0.9)), ("create", (0.2, 0.8)), ("export", (0.9, 0.2)))
    found = {each["measure"]: each for each in run_document(run.pk)["run"]["variance"]}
    assert found["judge/judge"]["judge"] > 0.2
    assert found["trial/pass"]["judge"] is None
    assert run_document(make_run(version).pk)["run"]["variance"] == []


def test_nothing_is_said_where_nothing_varies(signed_in, version):
    shown = page(signed_in(), judged(version, *[("create", (0.5,)), ("create", (0.5,))]))
    assert "of the variance" not in shown


def test_without_repeats_the_page_says_what_is_missing(signed_in, version):
    shown = page(signed_in(), judged(version, ("create", (0.5,)), ("export", (0.7,))))
    assert "Run 2 or more to separate the agent from the scenario mix" in shown

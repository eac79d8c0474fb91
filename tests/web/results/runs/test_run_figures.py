"""The figures above the runs: what is drawn, and of which runs."""

from __future__ import annotations

import pytest

from tests.builders import make_run, make_suite, make_trial
from tests.web.results.runs.pages import ADDRESS, tried
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


def test_three_figures_are_above_the_rows(signed_in, version):
    first = tried(version, "pass", "pass", trials=6, cost_usd=2.4)
    last = tried(version, "pass", "fail", trials=6, cost_usd=3.6)
    response = signed_in().get(ADDRESS)
    page, text = parse(response), response.content.decode()
    assert [each.text for each in page.all("figcaption b")] == [
        "Pass rate",
        "First-try success",
        "Cost per passed trial",
    ]
    assert [each.text for each in page.all("figcaption .now")] == ["50 %", "50 %", "$0.60"]
    assert page.count("last 2 runs") == 1
    assert page.all(".legend")[0].links == {f"run {first.pk}": f"{first.pk}/"}
    assert len(page.all("figure .baseline")) == 3
    assert f"Run {last.pk}, " in text
    assert "50 %, 95 % interval 25 % to 75 %, regressed</title>" in text.replace("\N{NO-BREAK SPACE}", " ")
    assert "intervals; for cost, derived from the pass rate." in text
    assert "style=" not in text


def test_runs_without_results_are_not_drawn(signed_in, version):
    make_run(version, state="queued")
    make_trial(make_run(version, cancelled=1), outcome="error")
    tried(version, "pass", "pass")
    page = parse(signed_in().get(ADDRESS))
    assert page.all("figure") == [] and "3 runs" in page


def test_the_figures_follow_the_filters_and_hold_twenty_runs(signed_in, project, version):
    other = make_suite(project, name="Second")
    for number in range(26):
        tried(other if number % 8 == 0 else version, "pass", "pass")
    for suite, runs in (("second", 4), (version.suite.slug, 20)):
        page = parse(signed_in().get(f"{ADDRESS}?suite={suite}"))
        assert f"last {runs} runs" in page
        assert page.all("figure")[0].count("95 % interval") == runs


def test_runs_of_several_lines_have_no_figures(signed_in, project, version):
    for each in (version, version, make_suite(project, name="Second")):
        tried(each, "pass", "pass")
    response = signed_in().get(ADDRESS)
    assert parse(response).all("figure") == []


def test_an_unmeasured_figure_is_replaced_by_a_sentence(signed_in, version):
    for _ in range(2):
        tried(version, "pass", "pass", cost_usd=None)
    text = signed_in().get(ADDRESS).content.decode()
    assert text.count("Not measured in these runs.") == 1
    assert "of the cost" not in text


@pytest.mark.slow
def test_older_pages_have_rows_only(signed_in, version):
    for _ in range(52):
        tried(version, "pass", "pass")
    client = signed_in()
    first = parse(client.get(ADDRESS))
    older = parse(client.get(ADDRESS + first.link("Older ›").address))
    assert (len(first.all("figure")), len(older.all("figure"))) == (3, 0)
    assert len(older.table("Runs").rows) == 2

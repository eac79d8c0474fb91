"""The figures above the list of runs."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from evalhub.lib import numbers
from evaluators.statistics.measure_change import Sample
from runs.results.rates import Rate
from runs.results.run_list import RowBaseline
from runs.results.run_page.list_views import Recent, drawn_figures

AT = datetime(2026, 11, 9, 12, tzinfo=UTC)


def recent(**changes):
    figures = {"run": 1, "at": AT, "rate": Rate(3, 4), "cost_usd": 1.2, "first_try": Sample(2, 0.5, 0.02)}
    return Recent(**{**figures, "regressed": False, **changes})


def titles(*runs, baseline=None):
    """Return for each figure what its newest column says."""
    figures = drawn_figures(runs, baseline).drawn
    roots = [ElementTree.fromstring(each.drawing) if each.drawing else None for each in figures]
    return [
        None if root is None else [*root.iter("title")][-1].text.replace("\N{NO-BREAK SPACE}", " ")
        for root in roots
    ]


def test_the_three_measures_have_their_intervals():
    # Wilson 3 of 4: 0.3006 to 0.9544. First tries: 0.5 ± 1.96 sqrt(0.02 / 1 / 2). Cost: 1.2 over 4 times Wilson.
    assert titles(recent(), recent(run=2)) == [
        "Run 2, 9 Nov, 75 %, 95 % interval 30 % to 95 %",
        "Run 2, 9 Nov, 50 %, 95 % interval 30 % to 70 %",
        "Run 2, 9 Nov, $0.40, 95 % interval $0.31 to $1.00",
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rate": Rate(0, 4)}, (True, True, False)),
        ({"cost_usd": None}, (True, True, False)),
        ({"first_try": None}, (True, False, True)),
        ({"first_try": Sample(1, 0.5, 0.0)}, (True, True, True)),
        ({"cost_usd": 0.0}, (True, True, True)),
        ({"at": None}, (True, True, True)),
    ],
    ids=["nothing passed", "no cost", "no commands", "one scenario", "free", "no day"],
)
def test_missing_values_are_not_drawn(changes, expected):
    assert tuple(title is not None for title in titles(recent(**changes), recent(**changes))) == expected


def test_a_baseline_that_measured_less_is_dotted_where_it_has_a_value():
    held = RowBaseline(9, 0, 4, 0.0, 1.0, None)
    figures = drawn_figures((recent(), recent(run=2)), held).drawn
    assert ["baseline" in each.drawing for each in figures] == [True, False, False]


@pytest.mark.parametrize(
    ("cost", "end"),
    [(0.13, "$0.16"), (1.0, "$1.20"), (0.0009, "$0.0010"), (300.0, "$400.00"), (70, "$80.00")],
)
def test_costs_have_a_round_scale(cost, end):
    figure = drawn_figures(
        (recent(rate=Rate(1, 1), cost_usd=cost), recent(run=2, rate=Rate(1, 1), cost_usd=cost)), None
    ).drawn[2]
    assert f">{end}</text>" in figure.drawing
    assert figure.now == numbers.format_money(cost)

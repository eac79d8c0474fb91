"""Pages write each kind of number in one way: rates in whole per cents, changes of rates in whole points."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from evalhub.lib import numbers
from evalhub.teams.models import Project
from runs.models import Run, Trial
from tests.history.storing import make_history
from tests.web.screen import Part, main_of

WRONG = {
    "more digits than mean something": re.compile(r"(?<![$\d.])\d+\.\d{3,}"),
    "a rate with decimals": re.compile(r"(?<![\d.])\d+\.\d\d+\s*%"),
    "a part of a point": re.compile(r"\d\.\d+\s*(pts|points)"),
}
RATES = re.compile(
    r"(?i)pass rate|first.try|error rate|retry rate|iteration ratio|retries after|pass\^|pass@"
)
DECIMAL = re.compile(r"(?<![$\d.])[01]\.\d\d\b")


@pytest.fixture
def addresses(db: None) -> dict[str, str]:
    """Return the pages of a generated project that show numbers."""
    make_history(runs=40, trials=10)
    root = "/p/demo-data/"
    run = Run.objects.exclude(baseline=None).order_by("-pk")[0]
    trial = Trial.objects.filter(outcome="fail").order_by("-pk")[0]
    earlier = Trial.objects.filter(scenario=trial.scenario, pk__lt=trial.pk).order_by("-pk")[0]
    pages = {
        "home": "",
        "runs": "runs/",
        "run": f"runs/{run.pk}/",
        "trial": f"trials/{trial.pk}/",
        "trials": f"trials/{trial.pk}/against/{earlier.pk}/",
        "compare": f"compare/?runs={run.baseline_id},{run.pk}&show=all",
        "trends": "trends/?measure=interaction/error_rate",
        "usage": "usage/?compare=version",
        "suites": "suites/",
        "suite": f"suites/{run.suite.slug}/",
    }
    return {name: root + page for name, page in pages.items()}


def _rate_cells(main: Part) -> Iterator[tuple[str, str]]:
    """Yield the cells whose row or column is a rate, and the facts that are."""
    for table in map(main.table, main.tables):
        for row in table.rows:
            for column, text in zip(table.columns, row.texts, strict=False):
                if RATES.search(column) or RATES.search(row.header or ""):
                    yield f"{row.header}, {column}", text
    yield from ((name, text) for name, text in main.facts.items() if RATES.search(name))


@pytest.mark.slow
def test_every_page_has_one_notation(addresses, signed_in):
    client = signed_in("admin", of=Project.objects.get(slug="demo-data"))
    wrong, rates = [], 0
    for name, address in addresses.items():
        main = main_of(client.get(address))
        labels = " ".join(each["aria-label"] for each in main.all("svg[aria-label]"))
        shown = main.text
        for part in main.all("[hidden], pre"):
            shown = shown.replace(part.text, "")
        wrong += [
            f"{name}: {what}: {found.group()}"
            for what, pattern in WRONG.items()
            for found in pattern.finditer(f"{shown} {labels}")
        ]
        cells = list(_rate_cells(main))
        rates += len(cells)
        wrong += [f"{name}: {place}: {text}" for place, text in cells if DECIMAL.search(text)]
    assert wrong == []
    assert rates > 50


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (1.0, "rate", "100\N{NO-BREAK SPACE}%"),
        (0.335, "ratio", "34\N{NO-BREAK SPACE}%"),
        (0.335, "score", "0.34"),
        (0.0044, "USD", "$0.0044"),
        (0.041, "USD", "$0.041"),
        (12.5, "USD", "$12.50"),
        (0.18, "s", "0.18 s"),
        (2.13, "s", "2.1 s"),
        (9.97, "s", "10 s"),
        (26.9, "s", "27 s"),
    ],
)
def test_a_measure_is_written_as_its_unit_says(value, unit, shown):
    assert numbers.format_measure(value, unit) == shown

"""Read and write changes as a run stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from evaluators.statistics.measure_change import ComparisonTest, MeasureChange
from runs.compare.measure_changes import HEADLINE, PASS
from runs.models import Change


def change_json(change: MeasureChange) -> dict[str, Any]:
    """Return a change as JSON: sizes from 0 to 1, shares of the value before on the relative scale."""
    document: dict[str, Any] = msgspec.to_builtins(change)
    return document


def change_from_json(stored: Mapping[str, Any]) -> MeasureChange:
    """Return a change from `change_json`."""
    test = _OLD_TESTS.get(stored["test"], stored["test"])
    return msgspec.convert({**stored, "test": test}, MeasureChange)


_OLD_TESTS = {"sign_flip": ComparisonTest.WITHIN_SCENARIOS, "mcnemar": ComparisonTest.WITHIN_SCENARIOS}
"""Tests of older releases."""


def stored_changes(run: int) -> list[MeasureChange]:
    """Return a run's changes against its baseline, headline measures first; none of older releases. One query."""
    rows = Change.objects.filter(run=run, scenario=None).values_list("detail", flat=True)
    changes = [change_from_json(detail) for detail in rows if "measure" in detail]
    order = {name: place for place, name in enumerate(HEADLINE)}
    return sorted(changes, key=lambda each: (order.get(each.measure, len(order)), each.measure))


def stored_scenario_changes(run: int) -> dict[str, MeasureChange]:
    """Return the stored changes of the pass rate by scenario key; unchanged scenarios are left out. One query."""
    rows = Change.objects.filter(run=run).exclude(scenario=None).values_list("scenario__key", "detail")
    return {key: change_from_json(detail) for key, detail in rows if "measure" in detail}


def pass_changes(runs: Sequence[int]) -> dict[int, MeasureChange]:
    """Return the pass rate's stored change of each run that has one. One query."""
    layer, _, name = PASS.partition("/")
    rows = Change.objects.filter(run__in=runs, scenario=None, measure__layer=layer, measure__name=name)
    stored = rows.values_list("run", "detail")
    return {run: change_from_json(detail) for run, detail in stored if "measure" in detail}

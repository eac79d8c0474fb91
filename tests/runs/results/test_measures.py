"""The keys of measures, which are rows."""

from __future__ import annotations

from typing import Any

import pytest

from evalhub.lib.limits import LONGEST_NAME
from runs.models import Measure
from runs.results.measures import measure_ids

pytestmark = pytest.mark.django_db

PASS, JUDGE, LONG = ("trial", "pass"), ("judge", "judge"), ("gates", "x" * (LONGEST_NAME + 1))


def test_new_measures_are_created_in_one_query(django_assert_num_queries: Any) -> None:
    known = measure_ids([PASS])
    with django_assert_num_queries(3):
        found = measure_ids([PASS, JUDGE, LONG])
    assert found[PASS] == known[PASS]
    assert set(found.values()) == set(Measure.objects.values_list("pk", flat=True))
    assert Measure.objects.get(pk=found[JUDGE]).unit == "score"


def test_known_measures_are_read_in_one_query(django_assert_num_queries: Any) -> None:
    found = measure_ids([PASS, JUDGE])
    with django_assert_num_queries(1):
        assert measure_ids([PASS, JUDGE]) == found

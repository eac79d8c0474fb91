"""Read which scenarios are decided by the aggregate score of their evaluators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from evaluators.grading.criteria import Criteria
from evaluators.grading.scores.composite_evaluator import without_models
from scenarios.models import SuiteEntry


class Aggregate(NamedTuple):
    """How a scenario's evaluators decide."""

    asks_model: bool
    """Whether one of them asks a model, which a run may leave out."""
    threshold: float
    """The scenario's own threshold."""


def aggregates_of(versions: Iterable[int]) -> dict[int, dict[str, Aggregate]]:
    """Return the scenarios with evaluators by suite version and key. One query."""
    found: dict[int, dict[str, Aggregate]] = {version: {} for version in versions}
    entries = SuiteEntry.objects.filter(
        suite_version__in=found, scenario_version__content__criteria__evaluators__0__isnull=False
    )
    columns = ("scenario_version__scenario__key", "scenario_version__content__criteria")
    for version, key, content in entries.values_list("suite_version_id", *columns):
        criteria = Criteria.model_validate(content)
        asks_model = without_models(criteria.evaluators) != criteria.evaluators
        found[version][key] = Aggregate(asks_model, criteria.threshold)
    return found

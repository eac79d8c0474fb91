"""The words of statements that judges decide about: their ids lose signs such as those of `12.50` and `--json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runs.models import Run, Trial
from scenarios.models import ScenarioVersion

Texts = Mapping[tuple[str, str], str]
"""Statements by the scenario's key and their id."""


def statement_texts(runs: Sequence[Run]) -> Texts:
    """Return the descriptions of all criteria of some runs' rubrics. One query."""
    rows = Trial.objects.filter(run__in=runs).exclude(scenario_version__rubric=None).order_by()
    contents = rows.values_list("scenario__key", "scenario_version__rubric__content__criteria").distinct()
    return {
        (key, criterion["id"]): criterion["description"]
        for key, criteria in contents
        for criterion in criteria or ()
    }


def statements_of(version: ScenarioVersion) -> dict[str, str]:
    """Return the statements of a scenario's rubric by their id; none of a rubric of scores."""
    content = version.rubric.content if version.rubric else {}
    if content.get("form") != "statements":
        return {}
    return {each["id"]: each["description"] for each in content["criteria"]}

"""Endpoints of scenarios and rubrics."""

from __future__ import annotations

from typing import Any

from ninja import Path, Query, Router

from evalhub.lib.storable_text import Text
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers, not_found
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from evalhub.web.rest.request_body import Key
from scenarios.api.schemas import (
    RubricOut,
    ScenarioOut,
    ScenarioWithVersionsOut,
    rubric_json,
    scenario_json,
    scenario_versions_json,
)
from scenarios.models import Rubric, Scenario

router = Router()


class ScenarioFilters(Cursor):
    """Which scenarios."""

    suite: Text = ""
    retired: bool | None = None


@router.get("/scenarios", auth=Bearer(), response=declare_answers(PageOut[ScenarioOut]), tags=["scenarios"])
def list_scenarios(request: ApiRequest, filters: Query[ScenarioFilters]) -> dict[str, Any]:
    """The project's scenarios, of one suite if asked."""
    scenarios = Scenario.objects.select_related("suite").filter(suite__project=request.access.project)
    if filters.suite:
        scenarios = scenarios.filter(suite__slug=filters.suite)
    if filters.retired is not None:
        scenarios = scenarios.filter(retired=filters.retired)
    return page_of(request, scenarios, filters, lambda page: [scenario_json(each) for each in page])


@router.get(
    "/scenarios/{scenario_id}",
    auth=Bearer(),
    response=declare_answers(ScenarioWithVersionsOut),
    tags=["scenarios"],
)
def get_scenario(request: ApiRequest, scenario_id: Path[Key]) -> dict[str, Any]:
    """One scenario with its versions, newest first."""
    scenarios = Scenario.objects.select_related("suite").filter(suite__project=request.access.project)
    scenario = scenarios.filter(pk=scenario_id).first()
    if scenario is None:
        raise not_found("scenario", scenario_id)
    versions = scenario.versions.select_related("scenario", "fixture").defer("fixture__archive")
    return {**scenario_json(scenario), "versions": scenario_versions_json(list(versions.order_by("-pk")))}


@router.get("/rubrics", auth=Bearer(), response=declare_answers(PageOut[RubricOut]), tags=["rubrics"])
def list_rubrics(request: ApiRequest, cursor: Query[Cursor]) -> dict[str, Any]:
    """The project's rubrics, each content once."""
    rubrics = Rubric.objects.filter(project=request.access.project)
    return page_of(request, rubrics, cursor, lambda page: [rubric_json(each) for each in page])


@router.get("/rubrics/{rubric_id}", auth=Bearer(), response=declare_answers(RubricOut), tags=["rubrics"])
def get_rubric(request: ApiRequest, rubric_id: Path[Key]) -> dict[str, Any]:
    """One rubric."""
    rubric = Rubric.objects.filter(project=request.access.project, pk=rubric_id).first()
    if rubric is None:
        raise not_found("rubric", rubric_id)
    return rubric_json(rubric)

"""Targets and baselines."""

from __future__ import annotations

from typing import Annotated, Any

from django.conf import settings
from ninja import Path, Query, Router, Schema, Status
from pydantic import Field

from evalhub.lib.storable_text import Text
from evalhub.lib.value import Moment
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import ApiError, declare_answers, not_found
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from evalhub.web.rest.request_body import JsonValue, Key, RequestBody
from evalhub.web.rest.schema import Username
from runs.compare.baselines import set_baseline, unset_baseline
from runs.models import Baseline, Target
from runs.results.lookup import find_run
from runs.targets import edits
from runs.targets.definitions import dump_yaml
from runs.targets.schemas import TargetOut

router = Router()


class DefinitionIn(RequestBody):
    """An entry of a targets file: name, provider and the provider's fields."""

    definition: dict[Text, JsonValue]


class BaselineOut(Schema):
    id: int
    run: int = Field(validation_alias="run_id")
    suite: str = Field(validation_alias="suite.slug")
    target: str = Field(validation_alias="target.name")
    branch: str
    by: Username | None
    at: Moment


class BaselineFilters(Cursor):
    """Filters of the list of baselines."""

    suite: Text = ""


class BaselineIn(RequestBody):
    """A finished run, and the branch whose runs compare with it. Default: every branch."""

    run: Key
    branch: Annotated[Text, Field(max_length=200)] = ""


@router.get("/targets", auth=Bearer(), response=declare_answers(PageOut[TargetOut]), tags=["targets"])
def list_targets(request: ApiRequest, cursor: Query[Cursor]) -> dict[str, Any]:
    """List the project's targets."""
    return page_of(request, Target.objects.filter(project=request.access.project), cursor)


@router.get("/targets/{name}", auth=Bearer(), response=declare_answers(TargetOut), tags=["targets"])
def get_target(request: ApiRequest, name: Path[Text]) -> Target:
    """Get one target by its name."""
    return _find(request, name)


@router.post(
    "/targets", auth=Bearer("upload"), response=declare_answers(TargetOut, status=201), tags=["targets"]
)
def create_target(request: ApiRequest, body: DefinitionIn) -> Status[Target]:
    """Add a target: a proposal that an admin accepts on the page; an embedded evalhub accepts it at once."""
    access, text = request.access, dump_yaml(body.definition)
    return Status(201, edits.add_target(access.project, text, by=access.user, accepted=settings.EMBEDDED))


@router.put("/targets/{name}", auth=Bearer("manage"), response=declare_answers(TargetOut), tags=["targets"])
def change_target(request: ApiRequest, name: Path[Text], body: DefinitionIn) -> Target:
    """Replace a target's definition; its name stays. On a server, only that of a proposal."""
    target = _find(request, name)
    if target.accepted and not settings.EMBEDDED:
        raise ApiError(403, "A target in use is changed on its page, not over REST.", id="target/in-use")
    return edits.rewrite(target, dump_yaml(body.definition), by=request.access.user)


def _find(request: ApiRequest, name: str) -> Target:
    target = Target.objects.filter(project=request.access.project, name=name).first()
    if target is None:
        raise not_found("target", name)
    return target


@router.get("/baselines", auth=Bearer(), response=declare_answers(PageOut[BaselineOut]), tags=["baselines"])
def list_baselines(request: ApiRequest, filters: Query[BaselineFilters]) -> dict[str, Any]:
    """List the baselines."""
    rows = Baseline.objects.filter(suite__project=request.access.project)
    if filters.suite:
        rows = rows.filter(suite__slug=filters.suite)
    return page_of(request, rows.select_related("suite", "target", "by"), filters)


@router.post(
    "/baselines", auth=Bearer("triage"), response=declare_answers(BaselineOut, status=201), tags=["baselines"]
)
def create_baseline(request: ApiRequest, body: BaselineIn) -> Status[Baseline]:
    """Make a run the baseline of its suite and target, in place of the last one."""
    run = find_run(request, body.run)
    return Status(201, set_baseline(run, by=request.access.user, branch=body.branch))


@router.delete(
    "/baselines/{baseline_id}",
    auth=Bearer("triage"),
    response=declare_answers(None, status=204),
    tags=["baselines"],
)
def delete_baseline(request: ApiRequest, baseline_id: Path[Key]) -> Status[None]:
    """Remove a baseline; later runs have none."""
    rows = Baseline.objects.select_related("run__project")
    baseline = rows.filter(suite__project=request.access.project, pk=baseline_id).first()
    if baseline is None:
        raise not_found("baseline", baseline_id)
    unset_baseline(baseline, by=request.access.user)
    return Status(204, None)

"""Start, list, read and cancel runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from ninja import Path, Query, Router, Status
from pydantic import BeforeValidator, Field

from evalhub.lib.timestamps import format_timestamp
from evalhub.teams import audit
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.teams.models import RAISED_BY_OTHERS, Priority, priority_named
from evalhub.web.rest.errors import ApiError, declare_answers, not_found
from evalhub.web.rest.pages import Cursor, PageOut, page_of, show_page
from evalhub.web.rest.request_body import JsonValue, Key, Name, RequestBody, validate_json
from runs.compare.baselines import check_choice
from runs.engine.recording import cancel_run
from runs.engine.retrying import RetryKind, retry_trials
from runs.errors import RequestError
from runs.exchange.exports.document import run_document, run_json
from runs.launch.inputs import find_newest_version, registry_from
from runs.launch.request import Request, request_runs
from runs.launch.run_request import LimitedRequest
from runs.models import Launch, Run
from runs.models.run import Trigger, run_with_uuid
from runs.results.filter_schemas import RunFilterValues
from runs.results.lookup import find_run
from runs.results.run_list import page_of_runs
from runs.results.run_tags import checked_tags, set_tags
from runs.results.schemas import LaunchedOut, LaunchOut, RunDocumentOut, RunOut, RunRowOut
from scenarios.models import Guidance, SuiteVersion
from scenarios.tool_descriptions import ToolDescriptions

router = Router(tags=["runs"])


class RunFilters(RunFilterValues, Cursor):
    """Filters of the list of runs."""


class SuiteChoice(RequestBody):
    """A suite by its slug, and its version; defaults to the last upload."""

    slug: Name
    version: Key | None = None


Names = Annotated[list[Name], Field(max_length=50)]


Address = Annotated[str, Field(max_length=2000, pattern=r"^(https?://\S+)?$")]


class RunsIn(LimitedRequest):
    """What to run: every combination of suite, target, model and guidance."""

    suites: Annotated[list[SuiteChoice | Name], Field(min_length=1, max_length=20)]
    guidance: Annotated[list[Key], Field(max_length=50)] = []
    """Ids of guidance versions. Default: each suite's last upload."""
    strict: bool = False
    """Refuse eval cases without `expect`, or with unknown keys in it."""
    seed: JsonValue = None
    """Values of {{seed:…}}; these override the suite's and the project's."""
    snapshot: JsonValue = None
    """Values of {{snapshot:…}}."""
    registry: JsonValue = None
    """The current tools: a list, or an MCP server's answer to tools/list."""
    tool_descriptions: Annotated[ToolDescriptions | None, BeforeValidator(validate_json)] = None
    """Texts in place of those of the MCP server under test: instructions, and descriptions of tools and arguments."""
    snapshot_url: Address = ""
    """An address that a worker reads for the snapshot just before the run, in place of `snapshot`."""
    registry_url: Address = ""
    """An address with the tools, or an MCP server, likewise."""


class Expand(RequestBody):
    """What to include with the run."""

    expand: Literal["", "trials"] = ""


@router.post("/runs", auth=Bearer("run"), response=declare_answers(LaunchedOut, status=202))
def create_runs(request: ApiRequest, body: RunsIn) -> Status[dict[str, Any]]:
    """Start runs of stored suites on stored targets; workers execute them."""
    if priority_named(body.priority) > Priority.NORMAL and not request.access.may("prioritize"):
        raise ApiError(403, RAISED_BY_OTHERS, id="run/priority")
    launch = request_runs(
        request.access.project, _request(request, body), by=request.access.user, trigger=Trigger.API
    )
    runs = list(launch.runs.order_by("pk").values_list("pk", flat=True))
    return Status(202, {"launch": launch.pk, "runs": runs})


@router.get("/runs", auth=Bearer(), response=declare_answers(PageOut[RunRowOut]))
def list_runs(request: ApiRequest, filters: Query[RunFilters]) -> dict[str, Any]:
    """List the runs that match, newest first."""
    before = str(filters.cursor or "")
    return show_page(
        request, page_of_runs(request.access.project, filters.filters(), before, size=filters.limit)
    )


@router.get("/runs/{run_id}", auth=Bearer(), response=declare_answers(RunDocumentOut), exclude_unset=True)
def get_run(request: ApiRequest, run_id: Path[Key], query: Query[Expand]) -> dict[str, Any]:
    """Get one run; with `expand=trials` also its trials, with the scores of every layer."""
    run = find_run(request, run_id)
    return run_document(run.pk) if query.expand else {"run": run_json(run)}


class TagsIn(RequestBody):
    """A run's new tags; with `was`, only if its tags are still these."""

    tags: Names
    was: Names | None = None


@router.patch("/runs/{run_id}", auth=Bearer("run"), response=declare_answers(RunOut))
def change_run(request: ApiRequest, run_id: Path[Key], body: TagsIn) -> dict[str, Any]:
    """Change a run's tags. With `was`, tags that somebody changed in between are refused."""
    run = find_run(request, run_id)
    set_tags(run, checked_tags(body.tags), was=body.was, by=request.access.user)
    return run_json(find_run(request, run_id))


@router.post("/runs/{run_id}/cancel", auth=Bearer("run"), response=declare_answers(RunOut))
def cancel(request: ApiRequest, run_id: Path[Key]) -> dict[str, Any]:
    """Cancel a run: queued trials at once, running ones within seconds. Finished trials are kept."""
    run = find_run(request, run_id)
    if not cancel_run(run.pk):
        raise ApiError(422, f"Run {run.pk} has already finished.", id="run/over")
    audit.append_event(request.access.project, request.access.user, "run.cancel", run)
    return run_json(find_run(request, run_id))


def _again(request: ApiRequest, run_id: int, kind: RetryKind) -> Status[dict[str, Any]]:
    retry_trials(find_run(request, run_id), kind, by=request.access.user)
    return Status(202, run_json(find_run(request, run_id)))


@router.post("/runs/{run_id}/retry", auth=Bearer("run"), response=declare_answers(RunOut, status=202))
def retry(request: ApiRequest, run_id: Path[Key]) -> Status[dict[str, Any]]:
    """Run a closed run's trials with errors again, in the same run. Their earlier attempts are kept."""
    return _again(request, run_id, RetryKind.RETRY)


@router.post("/runs/{run_id}/resume", auth=Bearer("run"), response=declare_answers(RunOut, status=202))
def resume(request: ApiRequest, run_id: Path[Key]) -> Status[dict[str, Any]]:
    """Run a closed run's cancelled trials, in the same run."""
    return _again(request, run_id, RetryKind.RESUME)


@router.get("/launches", auth=Bearer(), response=declare_answers(PageOut[LaunchOut]), tags=["launches"])
def list_launches(request: ApiRequest, cursor: Query[Cursor]) -> dict[str, Any]:
    """List launches, newest first."""
    launches = Launch.objects.select_related("by").filter(project=request.access.project)
    return page_of(request, launches, cursor, _launches)


@router.get("/launches/{launch_id}", auth=Bearer(), response=declare_answers(LaunchOut), tags=["launches"])
def get_launch(request: ApiRequest, launch_id: Path[Key]) -> dict[str, Any]:
    """Get one launch and its runs."""
    launches = Launch.objects.select_related("by").filter(project=request.access.project, pk=launch_id)
    rows = _launches(list(launches))
    if not rows:
        raise not_found("launch", launch_id)
    return rows[0]


def _launches(launches: Sequence[Launch]) -> list[dict[str, Any]]:
    runs: dict[int, list[int]] = {launch.pk: [] for launch in launches}
    for run, launch in Run.objects.filter(launch__in=launches).order_by("pk").values_list("pk", "launch"):
        runs[launch].append(run)
    return [
        {
            "id": launch.pk,
            "by": launch.by.get_username() if launch.by else None,
            "trigger": launch.trigger,
            "created": format_timestamp(launch.created),
            "priority": Priority(launch.priority).label,
            "request": launch.request,
            "runs": runs[launch.pk],
        }
        for launch in launches
    ]


def _request(request: ApiRequest, body: RunsIn) -> Request:
    return body.resolve(
        [_version(request, choice) for choice in body.suites],
        _guidance(request, body.guidance),
        strict=body.strict,
        **_baseline(request, body.baseline),
        seed=body.seed,
        snapshot=body.snapshot,
        snapshot_source=body.snapshot_url,
        registry=None if body.registry is None else registry_from(body.registry, "registry"),
        registry_source=body.registry_url,
        descriptions=body.tool_descriptions,
    )


def _baseline(request: ApiRequest, choice: str) -> dict[str, Any]:
    """Return the baseline as `RunOptions` has it: a number for a UUID. Files of the server are not read."""
    run = run_with_uuid(choice)
    if run and run.project_id == request.access.project.pk:
        choice = str(run.pk)
    check_choice(request.access.project.pk, choice)
    return {"baseline": choice}


def _version(request: ApiRequest, choice: SuiteChoice | str) -> SuiteVersion:
    if isinstance(choice, str):
        choice = SuiteChoice(slug=choice)
    if choice.version is None:
        return find_newest_version(request.access.project, choice.slug)
    rows = SuiteVersion.objects.select_related("suite").filter(suite__project=request.access.project)
    version = rows.filter(suite__slug=choice.slug, number=choice.version).first()
    if version is None:
        raise RequestError(f"Suite '{choice.slug}' has no version {choice.version}. List its versions.")
    return version


def _guidance(request: ApiRequest, ids: Sequence[int]) -> list[Guidance]:
    rows = Guidance.objects.filter(suite__project=request.access.project, pk__in=ids)
    versions = {guidance.pk: guidance for guidance in rows}
    if missing := [pk for pk in ids if pk not in versions]:
        raise RequestError(f"This project has no guidance {missing[0]}. List its guidance.")
    return [versions[pk] for pk in ids]

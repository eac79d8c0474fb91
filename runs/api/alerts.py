"""Changes against baselines, and their triage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from ninja import Path, Query, Router, Schema
from pydantic import Field, HttpUrl

from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import ApiError, answers, not_found
from evalhub.web.rest.given import Given, Key, Text
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from evalhub.web.timestamps import moment
from evaluators.regression import ChangeVerdict
from runs.api.lookup import find_run
from runs.models import Alert, Change
from runs.models.comparison import AlertState
from runs.warehouse.alert_filters import NOBODY, AlertListFilters
from runs.warehouse.triage import triage

router = Router()


class ChangeOut(Schema):
    id: int
    run: int
    baseline: int
    measure: str
    scenario: str | None
    verdict: str
    before: float | None
    after: float | None
    detail: dict[str, Any]


class ChangeFilters(Cursor):
    """Filters of the list of changes."""

    run: Key | None = None
    verdict: ChangeVerdict | None = None


class AlertOut(Schema):
    id: int
    run: int
    state: str
    assignee: str | None
    note: str
    link: str
    due: str | None
    created: str
    first_triaged: str | None


class AlertFilters(Cursor):
    """Filters of the list of alerts."""

    state: AlertState | None = None
    q: Text = Field("", description="Part of a suite's or target's name, or of a regressed scenario's key.")
    assignee: Text = Field("", description=f"A user's name, or {NOBODY}.")


class AlertIn(Given):
    """The fields to change; omitted fields stay as they are."""

    state: AlertState | None = None
    note: Annotated[Text, Field(max_length=5000)] | None = None
    link: Annotated[HttpUrl, Field(max_length=200)] | Literal[""] | None = None
    due: date | None = None
    assignee: Annotated[Text, Field(max_length=150)] | None = None
    """A member's name; null for nobody."""


@router.get("/changes", auth=Bearer(), response=answers(PageOut[ChangeOut]), tags=["changes"])
def list_changes(request: ApiRequest, filters: Query[ChangeFilters]) -> dict[str, Any]:
    """List the verdicts of runs against their baselines, newest first."""
    rows = Change.objects.filter(run__project=request.access.project)
    if filters.run is not None:
        rows = rows.filter(run=find_run(request, filters.run))
    if filters.verdict is not None:
        rows = rows.filter(verdict=filters.verdict)
    return page_of(request, rows.select_related("measure", "scenario"), filters, _changes)


def _changes(rows: Sequence[Change]) -> list[dict[str, Any]]:
    return [
        {
            "id": row.pk,
            "run": row.run_id,
            "baseline": row.baseline_id,
            "measure": str(row.measure),
            "scenario": row.scenario.key if row.scenario else None,
            "verdict": row.verdict,
            "before": row.before,
            "after": row.after,
            "detail": row.detail,
        }
        for row in rows
    ]


@router.get("/alerts", auth=Bearer(), response=answers(PageOut[AlertOut]), tags=["alerts"])
def list_alerts(request: ApiRequest, filters: Query[AlertFilters]) -> dict[str, Any]:
    """List the regressions that runs caused, with their triage, newest first."""
    rows = Alert.objects.filter(project=request.access.project).select_related("assignee")
    rows = rows.filter(AlertListFilters(filters.q, filters.assignee).condition())
    if filters.state is not None:
        rows = rows.filter(state=filters.state)
    return page_of(request, rows, filters, lambda alerts: [_alert(each) for each in alerts])


@router.patch("/alerts/{alert_id}", auth=Bearer("triage"), response=answers(AlertOut), tags=["alerts"])
def change_alert(request: ApiRequest, alert_id: Path[Key], given: AlertIn) -> dict[str, Any]:
    """Triage an alert: set its state, assignee, note, link or due date."""
    rows = Alert.objects.select_related("project", "assignee")
    alert = rows.filter(project=request.access.project, pk=alert_id).first()
    if alert is None:
        raise not_found("alert", alert_id)
    changes = {name: value for name, value in given if name in given.model_fields_set}
    nullable = ("due", "assignee")
    if not changes or any(value is None for name, value in changes.items() if name not in nullable):
        raise ApiError(422, "Send at least one field to change; only `due` may be null.", id="alert/nothing")
    if "assignee" in changes:
        changes["assignee"] = _member(request, changes["assignee"])
    if "link" in changes:
        changes["link"] = str(changes["link"])
    return _alert(triage(alert, by=request.access.user, **changes))


def _member(request: ApiRequest, name: str | None) -> User | None:
    """Return the member with this name, None for nobody."""
    if name is None:
        return None
    member = User.objects.filter(username=name, memberships__project=request.access.project).first()
    if member is None:
        raise ApiError(422, f"'{name}' is not a member of this project.", id="alert/assignee")
    return member


def _alert(alert: Alert) -> dict[str, Any]:
    return {
        "id": alert.pk,
        "run": alert.run_id,
        "state": alert.state,
        "assignee": alert.assignee.get_username() if alert.assignee else None,
        "note": alert.note,
        "link": alert.link,
        "due": alert.due.isoformat() if alert.due else None,
        "created": moment(alert.created),
        "first_triaged": moment(alert.first_triaged),
    }

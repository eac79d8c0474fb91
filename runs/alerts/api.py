"""Regressions over REST: the queue with its filters, and people's decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q
from django.utils import timezone
from ninja import Path, Query, Router, Schema, Status
from pydantic import BeforeValidator, Field, HttpUrl

from evalhub.lib.storable_text import Text
from evalhub.teams import audit
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.teams.models import Project
from evalhub.web.rest.columns import add_columns
from evalhub.web.rest.errors import ApiError, declare_answers, not_found
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from evalhub.web.rest.request_body import Key, RequestBody
from evaluators.statistics.measure_change import ChangeVerdict
from runs.compare.differences import GUIDANCE, change_words, changed_on_purpose
from runs.db import outbox
from runs.errors import Unrevertable
from runs.launch.confirmation import plan_confirmation, start_confirmation
from runs.models import Alert, Change
from runs.models.comparison import OPEN_ALERTS, AlertKind, AlertState, Evidence
from runs.results.address_filters import AddressFilters
from runs.results.lookup import find_run
from runs.results.run_filters import WORDS, InForce
from scenarios.adopted_guidance import plan_adoption, store_adoption
from scenarios.models import Suite

NOBODY = "(nobody)"
"""Means no assignee; user names have no brackets."""


@dataclass(frozen=True)
class AlertListFilters(AddressFilters):
    """Filters besides the state; an empty text isn't a filter."""

    q: str = ""
    """Part of a suite's or target's name, or of a regressed scenario's key."""
    assignee: str = ""
    """A user's name, or `NOBODY`."""
    evidence: str = ""
    """A value of `Evidence`."""

    def query(self, state: str) -> str:
        """Return the query string of a state with these filters."""
        return urlencode([("state", state), *self.in_force])

    def condition(self) -> Q:
        """Return the filters as one condition on alerts."""
        condition = Q(evidence=self.evidence) if self.evidence else Q()
        if self.assignee:
            condition &= Q(assignee=None) if self.assignee == NOBODY else Q(assignee__username=self.assignee)
        if self.q:
            # Search regressions per alert: there are far fewer alerts than changes.
            regressed = Change.objects.filter(run=OuterRef("run"), after__lt=F("before"))
            condition &= (
                Q(run__suite__name__icontains=self.q)
                | Q(run__target__name__icontains=self.q)
                | Q(Exists(regressed.filter(scenario__key__icontains=self.q)))
            )
        return condition


@dataclass(frozen=True)
class AlertCounts:
    """How many alerts of each state there are."""

    all: Counter[str]
    matching: Counter[str]
    """Alerts that match the filters."""
    left: dict[str, Counter[str]]
    """Alerts that match without one of the filters, by its name."""


def alert_counts(project: Project, filters: AlertListFilters) -> AlertCounts:
    """Return how many alerts each state has, and how many match. One query."""
    variants = {"matching": filters} | {
        f"without_{name}": filters.without(name) for name, _ in filters.in_force
    }
    counts = {name: Count("pk", filter=Q(pk__gt=0) & each.condition()) for name, each in variants.items()}
    alerts = Alert.objects.filter(project=project).order_by().values("state")
    rows = list(alerts.annotate(n=Count("pk"), **counts))
    by_name = {name: Counter({row["state"]: row[name] for row in rows}) for name in ("n", *counts)}
    left = {name: by_name[f"without_{name}"] for name, _ in filters.in_force}
    return AlertCounts(by_name["n"], by_name["matching"], left)


def active_alert_filters(filters: AlertListFilters, state: str, counts: AlertCounts) -> list[InForce]:
    """Return the active filters with their labels and the number of alerts without each."""
    return [
        InForce(
            WORDS.get(name, name),
            "nobody" if (name, value) == ("assignee", NOBODY) else value.replace("_", " "),
            filters.without(name).query(state),
            counts.left[name][state],
        )
        for name, value in filters.in_force
    ]


@transaction.atomic
def triage(alert: Alert, *, by: User | None, **changes: Any) -> Alert:
    """Change an alert's state, assignee, note or link."""
    # Locked, so that of two equal requests at once one assigns.
    was = Alert.objects.select_for_update().values_list("assignee", flat=True).get(pk=alert.pk)
    for name, value in changes.items():
        setattr(alert, name, value)
    alert.triaged = True
    if "state" in changes:
        alert.decided = None if alert.state in OPEN_ALERTS else alert.decided or timezone.now()
    alert.save(update_fields=[*changes, "triaged", "decided"])
    audit.append_event(
        alert.project, by, "alert.triage", f"run {alert.run_id}", changed=sorted(changes), state=alert.state
    )
    if alert.assignee_id != was:
        outbox.record_assignment(alert, by=by)
    return alert


def triage_all(alerts: Sequence[Alert], *, by: User | None, **changes: Any) -> int:
    """Change several alerts; return how many differed."""
    changed = 0
    for alert in alerts:
        alert_changes = {name: value for name, value in changes.items() if getattr(alert, name) != value}
        if alert_changes:
            triage(alert, by=by, **alert_changes)
            changed += 1
    return changed


def is_revertible(alert: Alert, adopted: int | None) -> bool:
    """Return whether an open alert is about the guidance that its suite has now; `adopted` is that guidance's key.

    Expects the alert's run and its baseline.
    """
    run = alert.run
    if alert.kind != AlertKind.AFTER_CHANGE or alert.state not in OPEN_ALERTS or run.baseline is None:
        return False
    return GUIDANCE in changed_on_purpose(run.baseline, run) and adopted == run.guidance_id


def revert_guidance(alert: Alert, *, by: User | None) -> bool:
    """Make the guidance of the alert's baseline the suite's again, and close the alert as fixed.

    Returns whether the suite's kept files hold it, too. Raises `Unrevertable`. Expects the alert's run with its suite,
    project and baseline.
    """
    run = alert.run
    planned = plan_adoption(run.suite, run.baseline.guidance) if run.baseline else None
    with transaction.atomic():
        # Locked, so that of two people at once one reverts.
        suite = Suite.objects.select_for_update(of=("self",)).select_related("project").get(pk=run.suite_id)
        newest = suite.uploads.first()
        alert.refresh_from_db(fields=["state"])
        if (
            planned is None
            or planned.upload != newest
            or not is_revertible(alert, planned.upload.guidance_id)
        ):
            raise Unrevertable(
                f"The alert is closed, or the suite has other guidance than run {run.pk} had. Nothing was reverted."
            )
        store_adoption(planned, suite, by=by)
        number = planned.guidance.number if planned.guidance else None
        audit.append_event(
            suite.project,
            by,
            "guidance.revert",
            planned.guidance or "none",
            suite=suite.slug,
            number=number,
        )
        triage(alert, by=by, state=AlertState.FIXED)
    return planned.edited is not None


router = Router()
RELATED = ("assignee", "run__guidance", "run__baseline")


@add_columns(Change, "id", "run", "baseline", "verdict", "before", "after")
class ChangeOut(Schema):
    measure: Annotated[str, BeforeValidator(str)]
    scenario: str | None
    detail: dict[str, Any]

    @staticmethod
    def resolve_scenario(row: Change) -> str | None:
        return row.scenario.key if row.scenario else None


class ChangeFilters(Cursor):
    """Filters of the list of changes."""

    run: Key | None = None
    verdict: ChangeVerdict | None = None


class DriftOut(Schema):
    """A decline over several runs, none of which regressed by itself."""

    since: int
    """The run from which the pass rate is lower."""
    before: float
    """The pass rate until then, 0 to 1."""
    after: float
    runs: int
    """How many runs show it together."""


@add_columns(Alert, "id", "run", "state", "reason", "confirmation", "assignee", "note", "link", "created")
class AlertOut(Schema):
    """An alert. The state wont_fix of `after_change` is what pages call *intended*."""

    kind: AlertKind
    drift: Annotated[DriftOut | None, BeforeValidator(lambda drift: drift or None)]
    """Null for another kind."""
    changed: str | None
    """Of `after_change`, what was changed on purpose, such as `after guidance 7`; null for another kind."""
    evidence: str
    """suspected, confirmed or not_confirmed."""
    named: list[str]
    """The scenarios that broke."""

    @staticmethod
    def resolve_changed(alert: Alert) -> str | None:
        is_intended = alert.kind == AlertKind.AFTER_CHANGE
        return change_words(alert.run.baseline, alert.run) if is_intended else None


class AlertFilters(Cursor):
    """Filters of the list of alerts."""

    state: AlertState | None = None
    open: bool = False
    """Only those that still need work: untriaged, acknowledged or investigating."""
    q: Text = Field("", description="Part of a suite's or target's name, or of a regressed scenario's key.")
    assignee: Text = Field("", description=f"A user's name, or {NOBODY}.")
    evidence: Evidence | None = None


class AlertIn(RequestBody):
    """The fields to change; omitted fields stay as they are."""

    state: AlertState | None = None
    note: Annotated[Text, Field(max_length=5000)] | None = None
    link: Annotated[HttpUrl, Field(max_length=200)] | Literal[""] | None = None
    assignee: Annotated[Text, Field(max_length=150)] | None = None
    """A member's name; null for nobody."""


class ChosenAlert(RequestBody):
    """An alert to change."""

    id: Key


class AlertsIn(RequestBody):
    """A change of several alerts; omitted fields stay as they are."""

    alerts: Annotated[list[ChosenAlert], Field(min_length=1, max_length=100)]
    state: AlertState | None = None
    assignee: Annotated[Text, Field(max_length=150)] | None = None
    """A member's name; null for nobody."""


class ChangedOut(Schema):
    changed: int


class ConfirmationOut(Schema):
    launch: int
    runs: list[int]
    """The new configuration's, then the old one's."""
    trials: int
    plan: str
    warning: str


@router.get("/changes", auth=Bearer(), response=declare_answers(PageOut[ChangeOut]), tags=["changes"])
def list_changes(request: ApiRequest, filters: Query[ChangeFilters]) -> dict[str, Any]:
    """List the verdicts of runs against their baselines, newest first."""
    rows = Change.objects.filter(run__project=request.access.project)
    if filters.run is not None:
        rows = rows.filter(run=find_run(request, filters.run))
    if filters.verdict is not None:
        rows = rows.filter(verdict=filters.verdict)
    return page_of(request, rows.select_related("measure", "scenario"), filters, list)


@router.get("/alerts", auth=Bearer(), response=declare_answers(PageOut[AlertOut]), tags=["alerts"])
def list_alerts(request: ApiRequest, filters: Query[AlertFilters]) -> dict[str, Any]:
    """List the regressions that runs caused, with their triage, newest first."""
    rows = Alert.objects.filter(project=request.access.project).select_related(*RELATED)
    chosen = AlertListFilters(filters.q, filters.assignee, filters.evidence or "")
    rows = rows.filter(chosen.condition())
    if filters.open:
        rows = rows.filter(state__in=OPEN_ALERTS)
    if filters.state is not None:
        rows = rows.filter(state=filters.state)
    return page_of(request, rows, filters, list)


@router.patch(
    "/alerts/{alert_id}", auth=Bearer("triage"), response=declare_answers(AlertOut), tags=["alerts"]
)
def change_alert(request: ApiRequest, alert_id: Path[Key], body: AlertIn) -> Alert:
    """Triage an alert: set its state, assignee, note or link."""
    alert = _find(request, alert_id)
    changes = {name: value for name, value in body if name in body.model_fields_set}
    if not changes or any(value is None for name, value in changes.items() if name != "assignee"):
        raise ApiError(
            422, "Send at least one field to change; only `assignee` may be null.", id="alert/nothing"
        )
    if "assignee" in changes:
        changes["assignee"] = _member(request, changes["assignee"])
    if "link" in changes:
        changes["link"] = str(changes["link"])
    return triage(alert, by=request.access.user, **changes)


@router.get("/alerts/{alert_id}", auth=Bearer(), response=declare_answers(AlertOut), tags=["alerts"])
def get_alert(request: ApiRequest, alert_id: Path[Key]) -> Alert:
    """Get one alert."""
    return _find(request, alert_id)


@router.patch("/alerts", auth=Bearer("triage"), response=declare_answers(ChangedOut), tags=["alerts"])
def change_alerts(request: ApiRequest, body: AlertsIn) -> dict[str, Any]:
    """Triage several alerts at once: set state or assignee."""
    changes: dict[str, Any] = {"state": body.state} if body.state else {}
    if "assignee" in body.model_fields_set:
        changes["assignee"] = _member(request, body.assignee)
    if not changes:
        raise ApiError(422, "Send `state` or `assignee`.", id="alert/nothing")
    alerts = [_find(request, each.id) for each in body.alerts]
    return {"changed": triage_all(alerts, by=request.access.user, **changes)}


@router.post(
    "/alerts/{alert_id}/confirm",
    auth=Bearer("run"),
    response=declare_answers(ConfirmationOut, status=202),
    tags=["alerts"],
)
def confirm_alert(request: ApiRequest, alert_id: Path[Key]) -> Status[dict[str, Any]]:
    """Confirm an alert: run the new and the old configuration in turn."""
    alert = _find(request, alert_id)
    plan = plan_confirmation(alert)
    launch = start_confirmation(alert, by=request.access.user)
    answer = {
        "launch": launch.pk,
        "runs": list(launch.runs.order_by("pk").values_list("pk", flat=True)),
        "trials": plan.trials,
        "plan": plan.sentence,
        "warning": plan.warning,
    }
    return Status(202, answer)


def _find(request: ApiRequest, alert_id: int) -> Alert:
    rows = Alert.objects.select_related("project", *RELATED)
    alert = rows.filter(project=request.access.project, pk=alert_id).first()
    if alert is None:
        raise not_found("alert", alert_id)
    return alert


def _member(request: ApiRequest, name: str | None) -> User | None:
    """Return the member with this name, None for nobody."""
    if name is None:
        return None
    member = User.objects.filter(username=name, memberships__project=request.access.project).first()
    if member is None:
        raise ApiError(422, f"'{name}' is not a member of this project.", id="alert/assignee")
    return member

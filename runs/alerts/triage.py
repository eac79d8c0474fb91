"""Record people's decisions on regressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evalhub.teams import audit
from runs.compare.intended_changes import GUIDANCE, changed_on_purpose
from runs.db import outbox
from runs.errors import Unrevertable
from runs.models import Alert
from runs.models.comparison import OPEN_ALERTS, AlertKind, AlertState
from scenarios.adopted_guidance import plan_adoption, store_adoption
from scenarios.models import Suite


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

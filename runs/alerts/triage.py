"""Record people's decisions on regressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evalhub.teams import audit
from runs.db import outbox
from runs.models import Alert
from runs.models.comparison import OPEN_ALERTS


@transaction.atomic
def triage(alert: Alert, *, by: User | None, **changes: Any) -> Alert:
    """Change an alert's state, assignee, note or link; the first change sets its triage time."""
    # Locked, so that of two equal requests at once one assigns.
    was, triaged = Alert.objects.select_for_update().values_list("assignee", "first_triaged").get(pk=alert.pk)
    for name, value in changes.items():
        setattr(alert, name, value)
    alert.first_triaged = triaged or timezone.now()
    if "state" in changes:
        alert.decided = None if alert.state in OPEN_ALERTS else alert.decided or timezone.now()
    alert.save(update_fields=[*changes, "first_triaged", "decided"])
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
        own = {name: value for name, value in changes.items() if getattr(alert, name) != value}
        if own:
            triage(alert, by=by, **own)
            changed += 1
    return changed

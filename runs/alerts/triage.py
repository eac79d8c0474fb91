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

LABELS = frozenset(("starred", "tags"))
"""Changes that decide nothing about a regression."""
MOST_TAGS, LONGEST_TAG = 20, 50


class StaleChange(Exception):
    """Somebody else changed the alert in the meantime; the message is a sentence."""


@transaction.atomic
def triage(alert: Alert, *, by: User | None, revision: int | None = None, **changes: Any) -> Alert:
    """Change an alert's state, note, link, due date, assignee, star or tags.

    The first change but a label sets its triage time. Raises `StaleChange` if `revision` is given and no longer the
    alert's.
    """
    # Locked, so that of two equal requests at once one assigns.
    locked = Alert.objects.select_for_update().values_list("assignee", "revision", "first_triaged")
    was, newest, triaged = locked.get(pk=alert.pk)
    if revision is not None and revision != newest:
        raise StaleChange(
            f"Someone changed the regression of run {alert.run_id} in the meantime, so it was left as it is."
        )
    for name, value in changes.items():
        setattr(alert, name, value)
    alert.first_triaged = triaged or (timezone.now() if changes.keys() - LABELS else None)
    alert.revision = newest + 1
    if "state" in changes:
        alert.decided = None if alert.state in OPEN_ALERTS else alert.decided or timezone.now()
    alert.save(update_fields=[*changes, "first_triaged", "revision", "decided"])
    audit.append_event(
        alert.project, by, "alert.triage", f"run {alert.run_id}", changed=sorted(changes), state=alert.state
    )
    if alert.assignee_id != was:
        outbox.record_assignment(alert, by=by)
    return alert


def triage_all(
    alerts: Sequence[tuple[Alert, int | None]], *, by: User | None, tag: str = "", **changes: Any
) -> tuple[int, list[str]]:
    """Change several alerts, each with the revision that was seen, and add a tag to each.

    Return how many changed, and a sentence for each that was left because somebody else changed it.
    """
    changed, left = 0, []
    for alert, revision in alerts:
        own = {name: value for name, value in changes.items() if getattr(alert, name) != value}
        if tag and tag not in alert.tags:
            own["tags"] = [*alert.tags, tag][:MOST_TAGS]
        if not own:
            continue
        try:
            triage(alert, by=by, revision=revision, **own)
            changed += 1
        except StaleChange as error:
            left.append(str(error))
    return changed, left


def tags_of(text: str) -> list[str]:
    """Return the tags of a comma-separated text, each once."""
    return list(dict.fromkeys(tag for each in text.split(",") if (tag := each.strip()[:LONGEST_TAG])))[
        :MOST_TAGS
    ]

"""Record people's decisions on regressions and judges' statements."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evalhub.teams import audit
from runs import outbox
from runs.errors import RequestError
from runs.models import Alert, JudgingRecord, Review


@transaction.atomic
def triage(alert: Alert, *, by: User | None, **changes: Any) -> Alert:
    """Change an alert's state, note, link, due date or assignee; the first change sets its triage time."""
    # Locked, so that of two equal requests at once one assigns.
    was = Alert.objects.select_for_update().values_list("assignee", flat=True).get(pk=alert.pk)
    for name, value in changes.items():
        setattr(alert, name, value)
    alert.first_triaged = alert.first_triaged or timezone.now()
    alert.save(update_fields=[*changes, "first_triaged"])
    audit.record(
        alert.project, by, "alert.triage", f"run {alert.run_id}", changed=sorted(changes), state=alert.state
    )
    if alert.assignee_id != was:
        outbox.record_assignment(alert, by=by)
    return alert


@transaction.atomic
def review(
    judging: JudgingRecord, *, by: User | None, polarity: str, position: int, word: str, comment: str = ""
) -> Review:
    """Store a person's review of a judge's statement, replacing their last one.

    Raises `RequestError` if the position has no statement.
    """
    statements = judging.content.get(f"{polarity}s") or []
    if position >= len(statements):
        raise RequestError(
            f"Judging {judging.pk} has no {polarity} at position {position}. It has {len(statements)}, "
            "counted from 0."
        )
    row, _ = Review.objects.update_or_create(
        judging=judging,
        polarity=polarity,
        position=position,
        by=by,
        defaults={"word": word, "note": comment, "at": timezone.now()},
    )
    audit.record(judging.trial.run.project, by, "review", f"judging {judging.pk}", word=word)
    return row

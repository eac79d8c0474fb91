"""Assign groups of judges' statements to people, by their wordings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.contrib.auth.models import User
from django.db import IntegrityError

from evalhub.teams import audit
from evalhub.teams.models import Project
from runs.db.transactions import write_transaction
from runs.errors import RequestError, StaleReview
from runs.models import GroupAssignment
from runs.review.reviewing import check_person

_TAKEN = "Somebody took or released this group in the meantime; nothing changed. Load the queue again."


def member_named(project: Project, name: str) -> User | None:
    """Return a member of the project, None for an empty name. Raises `RequestError` for anybody else."""
    if not name:
        return None
    person = User.objects.filter(memberships__project=project, username=name).first()
    if person is None:
        raise RequestError(f"{name[:100]} is not a member of this project.")
    return person


def assignees(project: Project, wordings: Iterable[tuple[str, str]]) -> dict[tuple[str, str], User]:
    """Return who reviews each wording, by polarity and hash. One query, none without wordings."""
    wanted = {wording for _, wording in wordings}
    if not wanted:
        return {}
    rows = GroupAssignment.objects.filter(project=project, wording__in=wanted).select_related("assignee")
    return {(row.polarity, row.wording): row.assignee for row in rows}


def assign_group(
    project: Project,
    polarity: str,
    wordings: Sequence[str],
    person: User | None,
    *,
    seen: int | None,
    by: User | None,
) -> None:
    """Assign a group by the hashes of its wordings, most frequent first; None releases it.

    Raises `StaleReview` if its assignee is no longer the one that was seen.
    """
    check_person(by)
    try:
        with write_transaction():
            found = assignees(project, [(polarity, each) for each in wordings])
            now = next((found[polarity, each] for each in wordings if (polarity, each) in found), None)
            if (now.pk if now else None) != seen:
                raise StaleReview(_TAKEN)
            GroupAssignment.objects.filter(project=project, polarity=polarity, wording__in=wordings).delete()
            GroupAssignment.objects.bulk_create(
                GroupAssignment(project=project, polarity=polarity, wording=each, assignee=person, by=by)
                for each in (dict.fromkeys(wordings) if person else ())
            )
            name = person.get_username() if person else ""
            audit.append_event(project, by, "review.assign", f"{len(wordings)} wordings", assignee=name)
    except IntegrityError as error:
        raise StaleReview(_TAKEN) from error

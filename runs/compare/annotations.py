"""Write and read notes on the time axis of trends."""

from __future__ import annotations

from datetime import date

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from evalhub.teams import audit
from evalhub.teams.access import Access
from evalhub.teams.models import Project
from runs.errors import RequestError
from runs.models import Annotation, Run
from scenarios.models import Suite

LONGEST_ANNOTATION = Annotation._meta.get_field("text").max_length or 0


def trend_annotations(project: Project, suite: Suite | None = None) -> QuerySet[Annotation]:
    """Return a project's annotations with their authors, the latest day first; of one suite, also those of all suites."""
    rows = Annotation.objects.filter(project=project).select_related("by", "suite")
    return rows.filter(Q(suite=suite) | Q(suite=None)) if suite else rows


@transaction.atomic
def add_annotation(
    project: Project,
    *,
    by: User,
    text: str,
    run: Run | None = None,
    suite: Suite | None = None,
    day: date | None = None,
) -> Annotation:
    """Store an annotation at a run, or on a day for one suite or all. Raises `RequestError`."""
    text = " ".join(text.split())
    if not text or len(text) > LONGEST_ANNOTATION or not text.isprintable():
        raise RequestError(f"Write an annotation of 1 to {LONGEST_ANNOTATION} characters.")
    if run is not None:
        suite, day = run.suite, (run.finished or run.created).date()
    if day is None:
        raise RequestError("Choose a run or a day for the annotation.")
    annotation = Annotation.objects.create(project=project, suite=suite, run=run, day=day, text=text, by=by)
    audit.append_event(project, by, "annotation.add", text, annotation=annotation.pk)
    return annotation


def may_remove(annotation: Annotation, access: Access) -> bool:
    """Return whether somebody may remove an annotation: its author, while they may annotate, or an admin."""
    is_author = annotation.by_id == access.user.pk and access.may("annotate")
    return is_author or access.may("manage")


@transaction.atomic
def remove_annotation(annotation: Annotation, *, by: User) -> None:
    """Delete an annotation."""
    audit.append_event(annotation.project, by, "annotation.remove", annotation.text, annotation=annotation.pk)
    annotation.delete()

"""Save, list and delete named views of the runs page."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from evalhub.lib.limits import LONGEST_ADDRESS
from evalhub.teams import audit
from evalhub.teams.models import Project
from runs.errors import RequestError
from runs.models import SavedView

LONGEST_NAME = SavedView._meta.get_field("name").max_length or 0
MOST_VIEWS = 100
"""Views that a person, or the team, can save in a project."""


def views_of(project: Project, user: User) -> list[SavedView]:
    """Return a person's views and the team's, a person's own first. One query."""
    views = SavedView.objects.filter(Q(owner=user) | Q(owner=None), project=project)
    return sorted(views, key=lambda view: (view.owner_id is None, view.name.lower()))


def default_view(views: Sequence[SavedView]) -> SavedView | None:
    """Return the view that is shown by default: the person's own, else the team's."""
    return next((view for view in views if view.is_default), None)


@transaction.atomic
def save_view(
    project: Project, *, by: User, name: str, query: str, for_team: bool, is_default: bool
) -> SavedView:
    """Store a view, replacing the one of the same name and owner. Raises `RequestError`."""
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise RequestError(f"Give the view a name of at most {LONGEST_NAME} characters.")
    if len(query) > LONGEST_ADDRESS:
        raise RequestError("These are too many filters for a view. Remove some.")
    owner = None if for_team else by
    # Locked, so that two requests at once leave one default.
    Project.objects.select_for_update().get(pk=project.pk)
    owner_views = SavedView.objects.filter(project=project, owner=owner)
    if owner_views.exclude(name=name).count() >= MOST_VIEWS:
        raise RequestError(f"There are {MOST_VIEWS} views already. Delete one first.")
    if is_default:
        owner_views.update(is_default=False)
    view, _ = SavedView.objects.update_or_create(
        project=project, owner=owner, name=name, defaults={"query": query, "is_default": is_default}
    )
    if for_team:
        audit.append_event(project, by, "view.save", name, query=query, default=is_default)
    return view


@transaction.atomic
def delete_view(view: SavedView, *, by: User) -> None:
    """Delete a view."""
    if view.owner_id is None:
        audit.append_event(view.project, by, "view.delete", view.name)
    view.delete()

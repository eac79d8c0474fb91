"""How many regressions wait for a decision, for the navigation of every page."""

from __future__ import annotations

from django import template

from evalhub.teams.models import Project
from runs.warehouse.alerts import untriaged

register = template.Library()


@register.simple_tag(name="untriaged")
def number_untriaged(project: Project) -> int:
    """Return how many alerts of a project nobody has decided about. One query."""
    return untriaged(project)

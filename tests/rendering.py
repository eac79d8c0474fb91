"""Templates that report their context to Django's test client, as Django's own do."""

from __future__ import annotations

from typing import Any

from django.test.signals import template_rendered
from jinja2 import Environment, Template

from evalhub import template_engine


class ReportingTemplate(Template):
    """A template whose context is in `response.context`."""

    def render(self, *args: Any, **kwargs: Any) -> str:
        template_rendered.send(sender=self, template=self, context=dict(*args, **kwargs))
        return super().render(*args, **kwargs)


def environment(**options: Any) -> Environment:
    """Return evalhub's environment with these templates."""
    made = template_engine.environment(**options)
    made.template_class = ReportingTemplate
    return made

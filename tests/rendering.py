"""Templates that tell Django's test client what they are given, as Django's own do."""

from __future__ import annotations

from typing import Any

from django.test.signals import template_rendered
from jinja2 import Environment, Template

from evalhub import template_engine


class Told(Template):
    """A template whose context stands in `response.context`."""

    def render(self, *args: Any, **kwargs: Any) -> str:
        template_rendered.send(sender=self, template=self, context=dict(*args, **kwargs))
        return super().render(*args, **kwargs)


def environment(**options: Any) -> Environment:
    """Return evalhub's environment with such templates."""
    made = template_engine.environment(**options)
    made.template_class = Told
    return made

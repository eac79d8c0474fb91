"""What templates can say: Jinja's environment with evalhub's filters and functions (docs/decisions/0007)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.template import defaultfilters
from django.templatetags.static import static
from django.utils.html import json_script
from django_htmx.jinja import htmx_script
from jinja2 import ChainableUndefined, Environment

from evalhub.web import words
from runs.warehouse.alerts import untriaged

FILTERS: tuple[Callable[..., Any], ...] = (
    *(words.cut, words.decimals, words.format_name, words.in_json, words.line, words.measured, words.visible),
    *(defaultfilters.date, defaultfilters.linebreaksbr, defaultfilters.pluralize, defaultfilters.urlencode),
    json_script,
)
FIGURES: dict[str, Callable[..., Any]] = {
    "percent": words.percent,
    "integer": words.integer,
    "money": words.money,
    "duration": words.duration,
    "file_size": words.file_size,
}
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(words.badge, words.current, words.dots, words.interval, words.progress_bar, words.rate),
    *(words.score_bar, words.share_bar, words.spark, words.url, words.when),
    *(htmx_script, untriaged),
)


def environment(**options: Any) -> Environment:
    """Return the environment of all templates; `options` are those of Django's backend.

    What is not there is shown as nothing, also below it: pages show what others wrote, and much of that is optional.
    """
    made = Environment(**options | {"undefined": ChainableUndefined})  # noqa: S701 (Django's backend turns it on)
    made.filters |= {each.__name__: each for each in FILTERS} | FIGURES
    made.globals |= {each.__name__: each for each in FUNCTIONS}
    # Names of files change with their content, which is read once.
    made.globals["static"] = static if settings.DEBUG else lru_cache(maxsize=64)(static)
    return made

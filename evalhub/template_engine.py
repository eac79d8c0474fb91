"""What templates can say: Jinja's environment with evalhub's filters and functions (docs/decisions/0007)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.template import defaultfilters
from django_htmx.jinja import htmx_script
from jinja2 import ChainableUndefined, Environment

from evalhub.web import words
from evalhub.web.anchors import anchor
from evalhub.web.coded import coded
from runs.warehouse.alerts import untriaged

FILTERS: tuple[Callable[..., Any], ...] = (
    *(words.badge, words.cut, words.dots, words.format_name, words.line, words.urlencode, words.visible),
    *(words.ago, words.timed, words.when),
    *(words.decimals, words.duration, words.file_size, words.integer),
    *(words.measured, words.money, words.percent, words.points),
    *(words.in_json, words.json_script),
    *(anchor, coded),
    *(defaultfilters.date, defaultfilters.linebreaksbr, defaultfilters.pluralize),
)
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(words.current, words.interval, words.length_bar, words.progress_bar, words.rate),
    *(words.score_bar, words.share_bar),
    *(words.spark, words.static, words.url),
    *(htmx_script, untriaged),
)


def environment(**options: Any) -> Environment:
    """Return the environment of all templates; `options` are those of Django's backend.

    What is not there is shown as nothing, also below it: pages show what others wrote, and much of that is optional.
    """
    # Django's backend gives `autoescape`.
    made = Environment(**options | {"undefined": ChainableUndefined})  # noqa: S701
    made.filters |= {each.__name__: each for each in FILTERS}
    made.globals |= {each.__name__: each for each in FUNCTIONS}
    made.tests["none"] = words.is_nothing
    return made

"""What templates can say: Jinja's environment with evalhub's filters and functions (docs/decisions/0007)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from zlib import crc32

from django.template import defaultfilters
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django_htmx.jinja import htmx_script
from jinja2 import ChainableUndefined, Environment

from evalhub.web import charts, template_filters
from evalhub.web.csv_export import csv_query
from runs.alerts.alert_page.alerts import count_untriaged
from runs.results.run_list import badge_of

# Escaping never introduces backticks. Fences of several backticks stay as they are.
_SPAN = re.compile(r"(?<!`)`(?!`)([^`\n]+)`(?!`)")


def coded(text: str) -> SafeString:
    """Return a text escaped, with text between two backticks on one line as code; a single backtick stays.

    The text has to be made visible before, as by `line` or `cut`.
    """
    escaped = escape(text)
    return mark_safe(_SPAN.sub(r"<code>\1</code>", escaped)) if "`" in escaped else escaped  # noqa: S308


def anchor(text: str) -> str:
    """Return a short name for a text that may hold anything, a secret or a megabyte; equal texts have one name."""
    return f"{crc32(text.encode(errors='surrogatepass')):08x}"


FILTERS: tuple[Callable[..., Any], ...] = (
    *(
        template_filters.age,
        template_filters.badge,
        template_filters.cut,
        template_filters.dots,
        template_filters.few,
        template_filters.format_name,
        template_filters.left_out,
        template_filters.line,
        template_filters.said,
        template_filters.sign,
        template_filters.urlencode,
        template_filters.visible,
    ),
    *(template_filters.ago, template_filters.date_of, template_filters.day),
    *(template_filters.moment, template_filters.on_day, template_filters.timed, template_filters.when),
    *(
        template_filters.decimals,
        template_filters.duration,
        template_filters.file_size,
        template_filters.integer,
    ),
    *(template_filters.measured, template_filters.money, template_filters.percent, template_filters.points),
    template_filters.in_points,
    template_filters.in_json,
    *(anchor, coded),
    *(defaultfilters.linebreaksbr, defaultfilters.pluralize),
)
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(
        template_filters.current,
        template_filters.day_bars,
        charts.dumbbell,
        template_filters.icon,
        template_filters.interval,
        template_filters.length_bar,
        template_filters.progress_bar,
        template_filters.rate,
    ),
    *(template_filters.score_bar, template_filters.share_bar),
    *(template_filters.spark, template_filters.static, template_filters.url),
    *(badge_of, csv_query, htmx_script, count_untriaged),
)


def environment(**options: Any) -> Environment:
    """Return the environment of all templates; `options` are those of Django's backend.

    What is not there is shown as nothing, also below it: pages show what others wrote, and much of that is optional.
    """
    # Django's backend gives `autoescape`.
    jinja_environment = Environment(**options | {"undefined": ChainableUndefined})  # noqa: S701
    jinja_environment.filters |= {each.__name__: each for each in FILTERS}
    jinja_environment.globals |= {each.__name__: each for each in FUNCTIONS}
    jinja_environment.tests["none"] = template_filters.is_nothing
    return jinja_environment

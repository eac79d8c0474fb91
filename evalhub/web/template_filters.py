"""Template filters: numbers, times, badges and small figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cache, wraps
from itertools import islice
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.templatetags.static import static as django_static
from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from jinja2 import Undefined, pass_context
from jinja2.runtime import Context

from evalhub.lib import numbers
from evalhub.web import charts, states
from evalhub.web import sanitize as hostile

MOST_LISTED = 200
"""Most entries of a list whose length an agent, a file or a model decides."""


def _none_if_undefined(value: Any) -> Any:
    """Return None for a name that the template's context doesn't have."""
    return None if isinstance(value, Undefined) else value


def is_nothing(value: Any) -> bool:
    """Return whether a value is None or missing; JSON from elsewhere omits unknown values."""
    return _none_if_undefined(value) is None


def _number(show: Callable[[Any], str]) -> Callable[[Any], str]:
    @wraps(show)
    def shown(value: Any) -> str:
        return show(_none_if_undefined(value))

    # Templates name a filter without the verb.
    shown.__name__ = show.__name__.removeprefix("format_")
    return shown


points, in_points, integer, money, duration, file_size = map(
    _number,
    (
        *(numbers.format_points, numbers.in_points, numbers.format_integer),
        *(numbers.format_money, numbers.format_duration, numbers.format_file_size),
    ),
)


def percent(value: Any, n: int = 0) -> str:
    """Return a share of 0 to 1 of n observations in percent."""
    return numbers.format_percent(_none_if_undefined(value), n)


def decimals(value: Any, places: int = 2) -> str:
    """Return a number with fixed decimals."""
    return numbers.format_decimals(_none_if_undefined(value), places)


def measured(value: Any, unit: str) -> str:
    """Return a value in the manner of its measure's unit."""
    return numbers.format_measure(_none_if_undefined(value), unit)


def visible(text: Any) -> str:
    """Return a text, redacted, with what is hidden in it made visible."""
    return hostile.show_text(str(text))


def cut(text: Any, characters: int = hostile.LONGEST) -> hostile.Cut:
    """Return as much of a text as a page shows."""
    return hostile.cut_text(str(text), characters=characters)


def few(items: Any) -> list[Any]:
    """Return the entries of a list, or the items of a mapping, that a page lists; nothing for a missing one."""
    collection = _none_if_undefined(items) or ()
    return list(islice(collection.items() if isinstance(collection, Mapping) else collection, MOST_LISTED))


def left_out(items: Any) -> int:
    """Return how many entries `few` leaves out."""
    return max(0, len(_none_if_undefined(items) or ()) - MOST_LISTED)


def line(text: Any) -> str:
    """Return a text on one line, short enough for a table cell."""
    shown = hostile.cut_text(" ".join(str(text)[:400].split()), characters=160, lines=1)
    return f"{shown.text}…" if shown.is_cut else shown.text


def urlencode(text: Any, safe: str = "/") -> str:
    """Return a text quoted for an address; `safe` characters aren't quoted."""
    return quote(str(text), safe=safe)


def format_name(name: str) -> str:
    """Return a file format's name for people."""
    return states.FORMATS.get(name, name)


def in_json(value: Any) -> str:
    """Return an expected or actual value as text: strings as they are, anything else as compact JSON."""
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def date_of(at: date) -> str:
    """Return a day as text, for names and labels."""
    return numbers.format_date(at)


def badge(state: str, word: str = "") -> SafeString:
    """Return a state as a badge, whose class brings the glyph."""
    look, called = states.look_of_state(state)
    return format_html('<span class="badge {}">{}</span>', look, word or called)


def said(state: str, words: str = "") -> SafeString:
    """Return a state in a text, with its sign and in its colour; other words where its own say too little."""
    sign, colour = states.sign_of_state(state)
    return format_html('<span class="{}">{} {}</span>', colour, sign, words or states.look_of_state(state)[1])


def sign(state: str, words: str = "") -> SafeString:
    """Return a state's sign in its colour, whose words screen readers say."""
    drawn, colour = states.sign_of_state(state)
    hidden = words or states.look_of_state(state)[1]
    return format_html(
        '<span class="{}">{}<span class="visually-hidden"> {}</span></span>', colour, drawn, hidden
    )


ICONS = settings.ASSETS / "static/vendor/lucide"
_SHAPES = re.compile(r"<svg.*?>(.*)</svg>", re.DOTALL)


@cache
def icon(name: str) -> SafeString:
    """Return an icon to stand beside its word, which says what it means.

    `name` is a file of `static/vendor/lucide` without its ending. Raises `FileNotFoundError` for another.
    """
    drawn = (ICONS / f"{name}.svg").read_text(encoding="utf-8")
    (shapes,) = _SHAPES.findall(drawn)
    return mark_safe(f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">{shapes.strip()}</svg>')  # noqa: S308


def when(at: datetime | None) -> SafeString:
    """Return a time as a `time` element, with the exact value as its title."""
    return timed(at, ago(at))


def on_day(at: datetime | None) -> SafeString:
    """Return on which day something was as a `time` element, for a sentence."""
    return timed(at, "" if at is None else numbers.format_day(at, now=datetime.now(UTC)))


def age(at: datetime | None) -> SafeString:
    """Return how old something is as a `time` element, for a narrow place."""
    return timed(at, "" if at is None else numbers.format_age(at, now=datetime.now(UTC)))


def ago(at: datetime | None) -> str:
    """Return a time relative to now, for `timed`."""
    return "" if at is None else numbers.format_moment(at, now=datetime.now(UTC))


def timed(at: datetime | None, text: str) -> SafeString:
    """Return a time as a `time` element with the given text; callers that store the text get it from `ago`."""
    if at is None:
        return format_html('<span class="muted">{}</span>', numbers.UNMEASURED)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        at.isoformat(timespec="seconds"),
        f"{numbers.date_and_time(at)} UTC",
        text,
    )


def moment(at: datetime | None) -> SafeString:
    """Return a time as a `time` element with its date and time, as for what is to come."""
    return timed(at, f"{numbers.date_and_time(at)} UTC" if at else "")


def day(at: date | None) -> SafeString:
    """Return a day as a `time` element."""
    if at is None:
        return format_html('<span class="muted">{}</span>', numbers.UNMEASURED)
    if isinstance(at, datetime):
        return timed(at, numbers.format_date(at))
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), numbers.format_date(at))


def rate(passed: int, n: int, mean: float | None = None) -> SafeString:
    """Return a rate with its n, as the mean over scenarios if given; without trials, the sign for not measured."""
    if not n:
        return format_html('<span class="muted">{}</span>', numbers.UNMEASURED)
    return format_html(
        '<span class="nowrap">{}<span class="of">{}/{}</span></span>',
        numbers.format_percent(passed / n if mean is None else mean, n),
        passed,
        n,
    )


def dots(outcomes: Iterable[str], here: int | None = None) -> SafeString:
    """Return a strip of outcomes."""
    return charts.draw_dots(outcomes, here)


def spark(
    values: Sequence[float],
    label: str,
    baseline: float | None = None,
    band: Sequence[tuple[float, float]] = (),
) -> SafeString:
    """Return a series of shares as a small line, within their intervals where these are given."""
    return charts.draw_sparkline(values, label=label, baseline=baseline, band=band)


def interval(
    low: float, estimate: float, high: float, mark: float | None = None, state: str = ""
) -> SafeString:
    """Return a share with its interval on the scale from 0 to 1."""
    return charts.draw_interval(low, estimate, high, mark=mark, state=state)


def share_bar(passed: int, total: int) -> SafeString:
    """Return a bar of passed and failed."""
    parts = [("passed", passed), ("failed", total - passed)]
    return charts.draw_bar(parts, total=total, label=f"{passed} of {total} passed")


def score_bar(score: float, threshold: float | None = None) -> SafeString:
    """Return a bar of a score from 0 to 1, with the threshold marked where there is one."""
    text = f"{score:.2f} of 1" + ("" if threshold is None else f", threshold {threshold:.2f}")
    return charts.draw_bar(
        [("new", min(max(score, 0.0), 1.0) * 100)],
        total=100,
        label=text,
        threshold=None if threshold is None else threshold * 100,
    )


def length_bar(share: float | None, longest: float) -> SafeString:
    """Return a bar of a rate's change, scaled to the longest in its column; empty if unknown."""
    if share is None:
        return mark_safe("")
    text = f"{share * 100:.0f} points"
    return charts.draw_bar([("new", round(share * 100, 1))], total=round(longest * 105, 1), label=text)


def progress_bar(run: Any) -> SafeString:
    """Return a bar of a run's counters; `running` trials are neither queued nor finished."""
    parts = [("passed", run.passed), ("failed", run.failed), ("error", run.errors), ("running", run.running)]
    names = ("passed", "failed", "errors", "running", "waiting")
    amounts = (run.passed, run.failed, run.errors, run.running, run.waiting)
    label = ", ".join(f"{amount} {name}" for name, amount in zip(names, amounts, strict=True))
    # The trials of a retest are waiting or running beside those of the run.
    return charts.draw_bar(parts, total=max(run.trials, sum(amounts)), label=label)


def day_bars(days: Sequence[tuple[date, float | None]]) -> SafeString:
    """Return a bar for the cost of each day, with its figures as its label."""
    named = [(f"{day:%a}", cost or 0.0) for day, cost in days]
    return charts.draw_day_bars(
        named, label=", ".join(f"{day} {numbers.format_money(cost)}" for day, cost in named)
    )


@pass_context
def current(context: Context, *prefixes: str) -> SafeString | str:
    """Return `aria-current` for a link whose pages' names begin with one of the prefixes."""
    match = getattr(context.get("request"), "resolver_match", None)
    name = (match.url_name or "") if match else ""
    return format_html(' aria-current="{}"', "page") if name.startswith(prefixes) else ""


def url(name: str, *args: Any) -> SafeString:
    """Return a page's address, escaped for an attribute. Raises `NoReverseMatch`."""
    return escape(reverse(name, args=args))


def static(path: str) -> str:
    """Return the address of a static file. Raises `ValueError` for one that was not collected."""
    return django_static(path)

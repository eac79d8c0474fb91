"""Rows of the long tables, drawn by functions: a template's engine costs more for fifty rows than the query behind them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from evalhub.web import numbers
from evalhub.web.templatetags import evalhub as words
from runs.warehouse.history import RunRow
from runs.warehouse.listing import ListedRun
from runs.warehouse.trends import Point

register = template.Library()
NOTHING = mark_safe(numbers.UNMEASURED)  # noqa: S308 (parts are escaped)

STALE = format_html(" {}", words.badge("stale"))

# The same few names and figures stand in every row.
cell = lru_cache(maxsize=8192)(escape)

RUN_ROW = (
    '<tr><td><input type="checkbox" name="runs" value="{pk}" aria-label="Choose run {pk}"></td>'
    '<td><a href="{pk}/" aria-label="Run {pk}">{pk}</a></td><td>{badge}{stale}</td>'
    '<td><a href="../suites/{slug}/">{suite}</a> <span class="muted">v{version}</span>'
    '<span class="sub">{target}{model}</span></td><td class="p3">{tool}</td><td class="p2">{guidance}</td>'
    '<td class="num">{rate}{errors}</td><td class="p3">{interval}</td>'
    '<td class="num p2 {direction}">{change}</td><td class="num p3">{judge}</td><td class="num p3">{first_try}</td>'
    '<td class="num p2">{cost}</td><td class="num p2">{took}</td><td class="p2 nowrap">{when}</td>'
    '<td class="p3 muted">{by}</td><td class="p3">{tags}</td></tr>'
)


@register.simple_tag
def run_rows(rows: Iterable[RunRow]) -> SafeString:
    """Return the rows of a list of runs, below its address."""
    return mark_safe("".join(_run_row(row, row.run) for row in rows if isinstance(row.run, ListedRun)))  # noqa: S308 (parts are escaped)


def _run_row(row: RunRow, run: ListedRun) -> SafeString:
    rate = row.rate
    return format_html(
        RUN_ROW,
        pk=run.pk,
        badge=words.badge(row.state),
        stale=STALE if run.is_stale else "",
        slug=cell(run.suite_slug),
        suite=cell(words.line(run.suite_name)),
        version=run.version,
        target=cell(words.line(run.target)),
        model=cell(f", {words.line(run.model)}" if run.model else ""),
        tool=cell(words.line(run.tool_version) or NOTHING),
        guidance=cell(words.line(run.guidance) or NOTHING),
        rate=words.rate(rate.passed, rate.n),
        errors=format_html('<span class="of caution">! {}</span>', run.errors) if run.errors else "",
        interval=words.interval(rate.low, rate.share, rate.high) if rate.n else NOTHING,
        direction={"regressed": "worse", "improved": "better"}.get(row.verdict, "muted"),
        change=cell(_change(row)),
        judge=cell(numbers.decimals(row.measures.get("judge"))),
        first_try=cell(numbers.decimals(row.measures.get("first_try"))),
        cost=cell(numbers.money(run.cost_usd)),
        took=cell(numbers.duration(run.seconds)),
        when=words.when(run.started),
        by=cell(words.line(run.by or "") or NOTHING),
        tags=mark_safe("".join(_tag(tag) for tag in run.tags)),  # noqa: S308 (parts are escaped)
    )


TREND_ROW = (
    '<tr><th scope="row"><a href="../runs/{run}/">{run}</a>{stale}</th><td class="num">{mean}</td><td class="num">{n}</td>'
    '<td class="num p2">{half}</td><td class="wrap">{guidance}</td><td class="p2 mono">{tool}</td>'
    '<td class="p3">{target}</td><td class="p3">{model}</td><td class="p2 nowrap">{when}</td></tr>'
)


@register.simple_tag
def trend_rows(points: Iterable[Point], unit: str) -> SafeString:
    """Return the rows of a trend's values, below its address."""
    return mark_safe("".join(_trend_row(point, unit) for point in points))  # noqa: S308 (parts are escaped)


def _trend_row(point: Point, unit: str) -> SafeString:
    return format_html(
        TREND_ROW,
        run=point.run,
        stale=STALE if point.is_stale else "",
        mean=cell(numbers.measured(point.mean, unit)),
        n=point.n,
        half=cell(numbers.decimals(point.half)),
        guidance=cell(words.line(point.guidance) or NOTHING),
        tool=cell(words.line(point.tool_version) or NOTHING),
        target=cell(words.line(point.target)),
        model=cell(words.line(point.model) or NOTHING),
        when=words.when(point.at),
    )


def _change(row: RunRow) -> str:
    if row.change is None:
        return numbers.UNMEASURED
    if not row.change:
        return "= 0"
    return f"{'▼' if row.change < 0 else '▲'} {numbers.decimals(row.change_points, 1)} pts"


@lru_cache(maxsize=1024)
def _tag(tag: str) -> SafeString:
    return format_html('<span class="tag">{}</span> ', words.line(tag))

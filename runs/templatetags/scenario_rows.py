"""The scenarios of a run and their trials, drawn by functions as the rows of `tables` are."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from evalhub.web import drawing, numbers
from evalhub.web.templatetags import evalhub as words
from runs.templatetags.tables import cell
from runs.warehouse.rates import Rate
from runs.warehouse.run_detail import ScenarioRow
from runs.warehouse.run_trials import TrialRow

register = template.Library()

SCENARIO = (
    '<tbody><tr><th scope="row" class="wrap"><a href="{opening}#trials" hx-get="{opening}" hx-target="#trials"'
    ' hx-push-url="true">{key}</a></th>{baseline}<td>{marks}</td><td class="p3">{strip}</td><td class="num">{rate}</td>'
    '<td class="num p2">{gates}</td><td class="num p2">{judge}</td><td class="num p3">{cost}</td>'
    '<td class="num p2">{took}</td>{standing}</tr>{trials}</tbody>'
)
TRIAL = (
    '<tr class="detail"><td colspan="{span}"><a href="{address}">Trial {number}</a> {badge}{lost}</td>'
    '<td class="p3"></td><td></td><td class="num p2">{gates}</td><td class="num p2">{judge}</td>'
    '<td class="num p3">{cost}</td><td class="num p2">{took}</td>{last}</tr>'
)
BASELINE = '<td class="p2">{}</td>'
STANDING = {
    "worse": mark_safe('<td class="nowrap"><span class="worse">▼ worse</span></td>'),
    "better": mark_safe('<td class="nowrap"><span class="better">▲ better</span></td>'),
    "": mark_safe('<td class="nowrap"><span class="muted">=</span></td>'),
}
EMPTY_CELL = mark_safe("<td></td>")


@register.simple_tag
def scenario_rows(
    rows: Iterable[ScenarioRow], slug: str, show: str, opened: str, *, compared: bool
) -> SafeString:
    """Return the scenarios, each with the trials that are shown of it; `compared` where there is a baseline."""
    trials = reverse("trial-detail", args=(slug, 0)).removesuffix("0/")
    drawn = (_scenario(row, trials, show, row.shown(opened), compared) for row in rows)
    return mark_safe("".join(drawn))  # noqa: S308 (parts are escaped)


def _scenario(
    row: ScenarioRow, address: str, show: str, trials: Iterable[TrialRow], compared: bool
) -> SafeString:
    return format_html(
        SCENARIO,
        opening=f"?show={quote(show)}&open={quote(row.key)}",
        key=cell(words.line(row.key)),
        baseline=format_html(BASELINE, drawing.dots(row.baseline)) if compared else "",
        marks=drawing.dots(row.marks),
        strip=drawing.dots(row.strip.outcomes),
        rate=words.rate(row.rate.passed, row.rate.n),
        gates=_gates(row.gates),
        judge=cell(numbers.decimals(row.judge)),
        cost=cell(numbers.money(row.cost)),
        took=cell(numbers.duration(row.seconds)),
        standing=STANDING[row.standing] if compared else "",
        trials=mark_safe("".join(_trial(trial, address, compared) for trial in trials)),  # noqa: S308
    )


def _trial(trial: TrialRow, address: str, compared: bool) -> SafeString:
    return format_html(
        TRIAL,
        span=3 if compared else 2,
        address=f"{address}{trial.pk}/",
        number=trial.number,
        badge=words.badge(trial.state),
        lost=format_html_join(
            "", '<span class="sub">{}</span>', ((words.line(said),) for said in trial.lost)
        ),
        gates=_gates(trial.gates),
        judge=cell(numbers.decimals(trial.judge)),
        cost=cell(numbers.money(trial.cost_usd)),
        took=cell(numbers.duration(trial.seconds)),
        last=EMPTY_CELL if compared else "",
    )


def _gates(rate: Rate) -> str:
    return f"{rate.passed}/{rate.n}" if rate.n else numbers.UNMEASURED

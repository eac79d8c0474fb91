"""Draw what changed below the large chart's axis: flags of what ran, and what people noted."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from django.utils.safestring import SafeString, mark_safe

from evalhub.lib.numbers import counted
from evalhub.web.sanitize import show_text
from runs.compare.trend_runs import Mark, TrendRun
from runs.compare.trends_page.trend import WIDTH, Plot
from runs.compare.trends_page.words import mark_words, short_day
from runs.models import Annotation

ORDER = "TGMJS"
APART = 30.0
"""Marks closer than this are one."""
LANE = 22
MOST_NAMED = 3
"""Changes that one mark names; the table has all."""
LONGEST_SHOWN = 130


class _Sign(NamedTuple):
    at: float
    """Position among the runs."""
    flags: str
    words: str


def draw_strip(
    marks: Sequence[Mark], annotations: Sequence[Annotation], runs: Sequence[TrendRun], plot: Plot
) -> SafeString:
    """Return the strip: a row of flags, a row of notes, and a row for the name of the one that is pointed at or has the focus.

    Marks that would overlap are one. Empty without marks and annotations.
    """
    rows = [
        ("flag", [_Sign(mark.at - 0.5, mark.flags, mark_words(mark, runs)) for mark in marks]),
        ("note", _notes(annotations, runs)),
    ]
    drawn = [(look, _merge(signs, plot)) for look, signs in rows if signs]
    if not drawn:
        return SafeString("")
    names = len(drawn) * LANE
    parts = [
        f'<svg class="strip" viewBox="0 0 {WIDTH} {names + LANE}" role="group" aria-label="What changed">'
    ]
    for lane, (look, signs) in enumerate(drawn):
        parts += (_draw(sign, look, lane * LANE, names, plot) for sign in signs)
    return mark_safe("".join([*parts, "</svg>"]))  # noqa: S308


def place_of(annotation: Annotation, runs: Sequence[TrendRun]) -> float | None:
    """Return an annotation's position among runs, between two of them for a day; None before the first."""
    places = {run.pk: at for at, run in enumerate(runs)}
    if annotation.run_id in places:
        return float(places[annotation.run_id])
    if not runs or annotation.day < runs[0].at.date():
        return None
    return bisect_left([run.at.date() for run in runs], annotation.day) - 0.5


def _notes(annotations: Sequence[Annotation], runs: Sequence[TrendRun]) -> list[_Sign]:
    placed = [(place_of(each, runs), each) for each in annotations]
    signs = [_Sign(at, "✎", _note_words(each)) for at, each in placed if at is not None]
    return sorted(signs, key=lambda sign: sign.at)


def _note_words(annotation: Annotation) -> str:
    by = annotation.by.get_username() if annotation.by else "somebody"
    run = f"run {annotation.run_id}, " if annotation.run_id else ""
    return f"{show_text(annotation.text)} ({run}{short_day(annotation.day)}, {by})"


def _merge(signs: Sequence[_Sign], plot: Plot) -> Iterator[_Sign]:
    """Yield signs, those that would overlap as one at the place of the first."""
    group: list[_Sign] = []
    for sign in signs:
        if group and plot.x(sign.at) - plot.x(group[0].at) >= APART:
            yield _one(group)
            group = []
        group.append(sign)
    if group:
        yield _one(group)


def _one(group: Sequence[_Sign]) -> _Sign:
    letters = {letter for sign in group for letter in sign.flags}
    flags = "".join(letter for letter in ORDER if letter in letters) or "✎"
    named = [sign.words for sign in group[-MOST_NAMED:][::-1]]
    if len(group) > MOST_NAMED:
        named.append(f"{counted(len(group) - MOST_NAMED, 'earlier change')}")
    return _Sign(group[0].at, flags, "; ".join(named))


def _draw(sign: _Sign, look: str, top: int, names: int, plot: Plot) -> str:
    x = plot.x(sign.at)
    width = 8 + 8 * len(sign.flags)
    third = WIDTH / 3
    anchor = "start" if x < third else "middle" if x < 2 * third else "end"
    shown = sign.words if len(sign.words) <= LONGEST_SHOWN else f"{sign.words[: LONGEST_SHOWN - 1]}…"
    return (
        f'<g class="sign" tabindex="0" role="img" data-at="{sign.at:g}" transform="translate({x:g})" '
        f'aria-label="{escape(f"{sign.flags}: {sign.words}")}">'
        f'<rect class="{look}" x="{-width / 2:g}" y="{top + 2}" width="{width}" height="{LANE - 5}" rx="2"/>'
        f'<text class="flag-text" y="{top + 15}">{sign.flags}</text>'
        f'<text class="name" y="{names + 15}" text-anchor="{anchor}">{escape(shown)}</text></g>'
    )

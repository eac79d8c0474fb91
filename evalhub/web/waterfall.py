"""Bars on one time axis, one figure a row: drawn by the server, no colours, no script, classes only."""

from __future__ import annotations

import math
from html import escape

from django.utils.safestring import SafeString, mark_safe

TICKS_SHOWN = 7
HEIGHT = 14
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)


def tick_step(length: float, *, whole: bool = False) -> float:
    """Return the distance between ticks: round, and so large that an axis has at most `TICKS_SHOWN`.

    Both are in seconds; a `whole` axis counts things, so that the distance is at least 1.
    """
    steps = (each for each in _STEPS if each >= 1) if whole else iter(_STEPS)
    return next((each for each in steps if length / each <= TICKS_SHOWN), length / TICKS_SHOWN)


def tick_places(start: float, end: float, step: float) -> list[float]:
    """Return the multiples of `step` from `start` to `end`."""
    first, last = math.ceil(start / step - 1e-9), math.floor(end / step + 1e-9)
    return [step * n for n in range(first, last + 1)]


def draw_axis(ticks: list[tuple[float, str]], grid: str) -> SafeString:
    """Return an axis with its labels; `ticks` are places from 0 to 1 with their text.

    It also defines its grid under the name that `draw_span` refers to.
    """
    lines = "".join(f'<line x1="{at:.2%}" x2="{at:.2%}" y1="0" y2="100%"/>' for at, _ in ticks)
    texts = "".join(
        f'<text x="{at:.2%}" y="11" text-anchor="{"end" if at > 0.96 else "start"}">{escape(text)}</text>'
        for at, text in ticks
    )
    return mark_safe(  # noqa: S308  # only numbers and escaped texts
        '<svg class="fall" aria-hidden="true" width="100%" height="16">'
        f'<defs><g id="{grid}" class="grid">{lines}</g></defs>{texts}</svg>'
    )


def draw_span(kind: str, start: float, end: float, label: str, grid: str) -> SafeString:
    """Return one row's bar from `start` to `end`, places on the axis from 0 to 1; the shortest is still seen."""
    return mark_safe(  # noqa: S308  # only numbers, an own class and an escaped text
        f'<svg class="fall" role="img" aria-label="{escape(label)}" width="100%" height="{HEIGHT}">'
        f'<use href="#{grid}"/><rect class="{kind}" x="{start:.2%}" y="3" width="{max(end - start, 0.0):.2%}" '
        f'height="8" rx="1"/></svg>'
    )

"""A measure over versions: a point with its interval for each, drawn by the server; right is newer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from math import isclose
from typing import NamedTuple

from django.utils.safestring import SafeString, mark_safe

HEIGHT = 120
EDGE = 16.0
FEW = 3
WIDE, NARROW = 1_080, 540
"""Widths for many and for few versions, so that words are about as large in both."""


class VersionPoint(NamedTuple):
    """A version's value; a look is a class, and colours need a verdict."""

    value: float
    ends: tuple[float, float] | None
    text: str
    look: str = ""
    before: float | None = None
    """The value of the version before it that it was compared with; None if it wasn't."""


def draw_versions(
    points: Sequence[VersionPoint | None], *, start: float, end: float, label: str
) -> SafeString:
    """Return points in equal columns on an axis from start to end; a version without a value has an empty column."""
    width = NARROW if len(points) <= FEW else WIDE

    def x(place: int) -> float:
        return width * (place + 0.5) / len(points)

    def y(value: float) -> float:
        share = (min(max(value, start), end) - start) / ((end - start) or 1.0)
        return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * share

    step = width / len(points)
    parts = [
        f'<svg class="version-strip" role="img" aria-label="{escape(label)}" viewBox="0 0 {width} {HEIGHT}" '
        f'width="{width}" height="{HEIGHT}">'
    ]
    for place, (previous, point) in enumerate(pairwise([None, *points])):
        if point and point.before is not None:
            is_same = previous is not None and isclose(previous.value, point.before, rel_tol=0.02)
            # How far before a point, in columns, the version that it was compared with is drawn unless it
            # is the one beside it.
            parts += _draw_link(x(place) - (step if is_same else step * 0.3), x(place), y, point, is_same)
    # Above all lines, which may cross a value.
    for place, point in enumerate(points):
        parts += _draw_point(x(place), y, point) if point else []
    return mark_safe("".join([*parts, "</svg>"]))  # noqa: S308  # only numbers, classes and escaped texts


def _draw_link(
    left: float, right: float, y: Callable[[float], float], point: VersionPoint, is_same: bool
) -> list[str]:
    """Return the line from the version before: from its point if that has this value, else from a circle of its own."""
    start, end = y(point.before or 0.0), y(point.value)
    line = f'<path class="line" d="M{left:.1f} {start:.1f} L{right:.1f} {end:.1f}"/>'
    return [line] if is_same else [line, f'<circle class="before" cx="{left:.1f}" cy="{start:.1f}" r="3.5"/>']


def _draw_point(x: float, y: Callable[[float], float], point: VersionPoint) -> list[str]:
    parts = []
    if point.ends:
        low, high = y(point.ends[0]), y(point.ends[1])
        parts.append(
            f'<line class="own {point.look}" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
        )
    return [
        *parts,
        f'<circle class="point {point.look}" cx="{x:.1f}" cy="{y(point.value):.1f}" r="5"/>',
        f'<text class="value" x="{x + 12:.1f}" y="{y(point.value) + 4:.1f}">{escape(point.text)}</text>',
    ]

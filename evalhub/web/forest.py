"""A row of a forest plot: an effect with its interval on an axis with zero and the smallest effect; right is better."""

from __future__ import annotations

from html import escape

from django.utils.safestring import SafeString, mark_safe

WIDTH, HEIGHT = 420, 26
EDGE = 8.0


def draw_effect(
    effect: float,
    ends: tuple[float, float] | None,
    *,
    span: float,
    smallest: float,
    look: str,
    label: str,
) -> SafeString:
    """Return an effect as a dot with its interval from `-span` to `span`; what lies beyond stops at the edge.

    Between minus and plus `smallest` the axis is shaded.
    """

    def x(value: float) -> float:
        share = (min(max(value, -span), span) + span) / (2 * span)
        return EDGE + (WIDTH - 2 * EDGE) * share

    left, right = x(-smallest), x(smallest)
    parts = [
        f'<svg class="forest {look}" role="img" aria-label="{escape(label)}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}">',
        f'<rect class="small" x="{left:.1f}" y="0" width="{right - left:.1f}" height="{HEIGHT}"/>',
        f'<line class="zero" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="0" y2="{HEIGHT}"/>',
    ]
    if ends:
        low, high = sorted(map(x, ends))
        parts.append(f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="13" y2="13"/>')
    parts.append(f'<circle class="est" cx="{x(effect):.1f}" cy="13" r="5"/></svg>')
    return mark_safe("".join(parts))  # noqa: S308  # only numbers and an escaped text

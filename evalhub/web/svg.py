"""Small figures drawn into a page: no colours, no script, classes only.

Larger charts are Plotly figures; these stay SVG because tables show dozens of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from evalhub.lib.numbers import percent

OUTCOMES = {"pass": "passed", "fail": "failed", "error": "error", "none": "not run", "running": "running"}
INTERVAL_WIDTH = 110
SPARK_WIDTH, SPARK_HEIGHT = 168, 30


def dots(outcomes: Iterable[str], here: int | None = None) -> SafeString:
    """Return a strip of trials, oldest first; `gap` draws the line of a version change, `here` rings one."""
    # Sessions have no outcome.
    marks = tuple([each or "none" for each in outcomes])
    counts = ", ".join(f"{marks.count(key)} {word}" for key, word in OUTCOMES.items() if key in marks)
    classes = [("" if key == "pass" else key) + (" here" if n == here else "") for n, key in enumerate(marks)]
    drawn = format_html_join("", '<i class="{}"></i>', ((each.strip(),) for each in classes))
    return format_html(
        '<span class="dots" role="img" aria-label="{}">{}</span>', counts or "no trials", drawn
    )


def interval(
    low: float,
    estimate: float,
    high: float,
    *,
    start: float = 0.0,
    end: float = 1.0,
    state: str = "",
    mark: float | None = None,
) -> SafeString:
    """Return an estimate with its interval on the scale from start to end; values beyond it stop at the edge."""

    def x(value: float) -> str:
        share = (min(max(value, start), end) - start) / (end - start)
        return f"{4 + (INTERVAL_WIDTH - 8) * share:.1f}"

    # On a scale of shares the label says per cents, else the values.
    show = percent if (start, end) == (0.0, 1.0) else "{:.3g}".format
    line = (
        mark_safe("")
        if mark is None
        else format_html('<line class="zero" x1="{0}" x2="{0}" y1="1" y2="13"/>', x(mark))
    )
    return format_html(
        '<svg class="interval {}" role="img" width="{}" height="14" aria-label="{}, 95 % interval {} to {}">'
        '<line class="track" x1="2" x2="{}" y1="7" y2="7"/>{}'
        '<line class="range" x1="{}" x2="{}" y1="7" y2="7"/><circle class="point" cx="{}" cy="7" r="2.5"/></svg>',
        state,
        INTERVAL_WIDTH,
        show(estimate),
        show(low),
        show(high),
        INTERVAL_WIDTH - 2,
        line,
        x(low),
        x(high),
        x(estimate),
    )


def bar(
    parts: Iterable[tuple[str, float]], *, total: float, label: str, threshold: float | None = None
) -> SafeString:
    """Return one bar of parts (class, amount) out of total; it stretches to its cell."""
    whole = total or 1
    at = 0.0
    rects = [("rest", "0", f"{whole:g}")]
    for name, amount in parts:
        rects.append((name, f"{at:g}", f"{amount:g}"))
        at += amount
    if threshold is not None:
        rects.append(("threshold", f"{threshold:g}", f"{whole / 150:.4f}"))
    return format_html(
        '<svg class="bar" role="img" aria-label="{}" viewBox="0 0 {} 4" preserveAspectRatio="none">{}</svg>',
        label,
        f"{whole:g}",
        format_html_join("", '<rect class="{}" x="{}" width="{}" height="4"/>', rects),
    )


def spark(
    values: Sequence[float],
    *,
    label: str,
    baseline: float | None = None,
    band: Sequence[tuple[float, float]] = (),
) -> SafeString:
    """Return a line over shares of 0 to 1, one a run, evenly spaced, with the baseline dotted.

    `band` has the ends of each share's interval, or nothing.
    """
    if len(values) < 2:
        return format_html('<span class="muted">{}</span>', "one run" if values else "–")

    def point(index: int, value: float) -> str:
        x = 2 + (SPARK_WIDTH - 6) * index / (len(values) - 1)
        return f"{x:.1f} {2 + (SPARK_HEIGHT - 4) * (1 - min(max(value, 0.0), 1.0)):.1f}"

    points = [point(index, value) for index, value in enumerate(values)]
    lower, upper = ([point(index, each[end]) for index, each in enumerate(band)] for end in (0, 1))
    around = format_html('<path class="band" d="M{}Z"/>', " L".join([*upper, *lower[::-1]])) if band else ""
    dotted = mark_safe("")
    if baseline is not None:
        dotted = format_html(
            '<path class="baseline" d="M{} L{}"/>', point(0, baseline), point(len(values) - 1, baseline)
        )
    x, y = points[-1].split()
    return format_html(
        '<svg class="spark" role="img" aria-label="{}" width="{}" height="{}">{}{}'
        '<path class="line" d="M{}"/><circle class="dot" cx="{}" cy="{}" r="2"/></svg>',
        label,
        SPARK_WIDTH,
        SPARK_HEIGHT,
        around,
        dotted,
        " L".join(points),
        x,
        y,
    )


def day_bars(days: Sequence[tuple[str, float]], *, label: str) -> SafeString:
    """Return a bar for each day (its name, an amount), the highest as high as the figure."""
    most = max((amount for _, amount in days), default=0.0) or 1.0
    bars = [
        (24 * n + 2, f"{24 - 22 * amount / most:.1f}", f"{22 * amount / most:.1f}", 24 * n + 12, name[:1])
        for n, (name, amount) in enumerate(days)
    ]
    return format_html(
        '<svg class="days" role="img" aria-label="{}" width="{}" height="36">{}</svg>',
        label,
        24 * len(days),
        format_html_join(
            "",
            '<rect x="{}" y="{}" width="20" height="{}"/><text x="{}" y="35" text-anchor="middle">{}</text>',
            bars,
        ),
    )


def dumbbell(
    before: float,
    after: float,
    *,
    band: tuple[float, float] | None = None,
    label: str = "",
    look: str = "",
) -> SafeString:
    """Return two shares of an axis: the old one grey, a line to the new one. Only a verdict gives the new one a look.

    `band` is an area of the axis behind both.
    """
    old, new = _dumbbell_x(before), _dumbbell_x(after)
    return format_html(
        '<svg class="dumbbell {}" role="img" aria-label="{}" viewBox="0 0 120 14" width="120" height="14">'
        '<line class="track" x1="4" x2="116" y1="7" y2="7"/>{}<line class="move" x1="{}" x2="{}" y1="7" y2="7"/>'
        '<circle class="old" cx="{}" cy="7" r="3.5"/><circle class="new" cx="{}" cy="7" r="4"/></svg>',
        look,
        label or f"{percent(before)} to {percent(after)}",
        _draw_band(*band) if band else "",
        *(f"{each:.1f}" for each in (old, new, old, new)),
    )


def _draw_band(low: float, high: float) -> SafeString:
    left, right = _dumbbell_x(low) - 2, _dumbbell_x(high) + 2
    sizes = f"{left:.1f}", f"{right - left:.1f}"
    return format_html('<rect class="band" x="{}" y="2" width="{}" height="10" rx="2"/>', *sizes)


def _dumbbell_x(share: float) -> float:
    return 4 + 112 * min(max(share, 0.0), 1.0)

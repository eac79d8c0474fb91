"""A line of runs with the band where the newest was expected: drawn by the server, no colours, no script, classes only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from django.utils.safestring import SafeString, mark_safe

Ends = tuple[float, float]
NARROW = 340


@dataclass(frozen=True)
class LineOfRuns:
    """Pass rates from 0 to 1, the oldest first; the last is the newest run's."""

    rates: Sequence[float]
    interval: Ends
    """The newest run's 95 % interval."""
    band: Ends | None = None
    """Where the newest was expected; None for too few runs before it."""
    look: str = "is-little"
    """The class of its verdict; a colour needs one."""
    since: int | None = None
    """The first run that left the band, by its place."""
    flags: Mapping[int, str] = field(default_factory=dict)
    """What changed before a run, by its place."""

    @property
    def start(self) -> float:
        """Where the axis begins: half, or zero where something lies below."""
        lowest = min([*self.rates, self.interval[0], *(self.band or ())])
        return 0.5 if lowest >= 0.5 else 0.0


@dataclass(frozen=True)
class _Plot:
    """Places of a chart in pixels."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    start: float
    runs: int

    def x(self, place: float) -> float:
        return self.left + (self.right - self.left) * (place / (self.runs - 1) if self.runs > 1 else 0.5)

    def y(self, rate: float) -> float:
        share = (min(max(rate, self.start), 1.0) - self.start) / (1.0 - self.start)
        return self.bottom - (self.bottom - self.top) * share


def draw_line(
    line: LineOfRuns, *, label: str, show: Callable[[float], str], is_narrow: bool = False
) -> SafeString:
    """Return a large chart with an axis from 0 or 50 % to 100 %, the newest value and what changed before it.

    A narrow one is for screens on which the other's words would be too small.
    """
    width, height = (NARROW, 170) if is_narrow else (640, 190)
    plot = _Plot(width, height, 44, width - 80, 10, height - 32, line.start, len(line.rates))
    return _svg(
        plot, line, label, [*_steps(plot, show), *_layers(plot, line, 5.0), *_words(plot, line, show)]
    )


def draw_small_line(line: LineOfRuns, *, label: str, start: float) -> SafeString:
    """Return a small chart without words, whose axis begins at `start`, as that of all beside it does."""
    plot = _Plot(200, 40, 4, 192, 5, 35, start, len(line.rates))
    return _svg(plot, line, label, _layers(plot, line, 3.5))


def _svg(plot: _Plot, line: LineOfRuns, label: str, parts: Sequence[str]) -> SafeString:
    head = (
        f'<svg class="line-chart {line.look}{" is-narrow" if plot.width == NARROW else ""}" role="img" aria-label="{escape(label)}" '
        f'viewBox="0 0 {plot.width:g} {plot.height:g}" width="{plot.width:g}" height="{plot.height:g}">'
    )
    return mark_safe("".join([head, *parts, "</svg>"]))  # noqa: S308  # only numbers and escaped texts


def _steps(plot: _Plot, show: Callable[[float], str]) -> Iterator[str]:
    for rate in (plot.start, (1.0 + plot.start) / 2, 1.0):
        y = plot.y(rate)
        yield f'<line class="grid-line" x1="{plot.left:g}" x2="{plot.right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{plot.left - 6:g}" y="{y + 4:.1f}" text-anchor="end">{escape(show(rate))}</text>'


def _layers(plot: _Plot, line: LineOfRuns, radius: float) -> list[str]:
    last = len(line.rates) - 1
    parts = []
    if line.band:
        top, height = plot.y(line.band[1]), plot.y(line.band[0]) - plot.y(line.band[1])
        width = plot.right - plot.left
        parts.append(
            f'<rect class="band" x="{plot.left:g}" y="{top:.1f}" width="{width:g}" height="{max(height, 1):.1f}"/>'
        )
    if line.since is not None:
        begin = plot.x(max(line.since - 0.5, 0))
        parts.append(
            f'<rect class="since" x="{begin:.1f}" y="{plot.top:g}" width="{plot.right + 6 - begin:.1f}" '
            f'height="{plot.bottom - plot.top:g}"/>'
        )
    points = " L".join(f"{plot.x(place):.1f} {plot.y(rate):.1f}" for place, rate in enumerate(line.rates))
    parts.append(f'<path class="line" d="M{points}"/>')
    parts += (
        f'<circle class="point" cx="{plot.x(place):.1f}" cy="{plot.y(rate):.1f}" r="{radius / 2.3:.1f}"/>'
        for place, rate in enumerate(line.rates[:-1])
    )
    x, (low, high) = plot.x(last), line.interval
    parts.append(
        f'<line class="own" x1="{x:.1f}" x2="{x:.1f}" y1="{plot.y(low):.1f}" y2="{plot.y(high):.1f}"/>'
    )
    parts.append(f'<circle class="newest" cx="{x:.1f}" cy="{plot.y(line.rates[-1]):.1f}" r="{radius:g}"/>')
    return parts


def _words(plot: _Plot, line: LineOfRuns, show: Callable[[float], str]) -> Iterator[str]:
    for place, text in line.flags.items():
        x = plot.x(max(place - 0.5, 0))
        yield f'<line class="flag" x1="{x:.1f}" x2="{x:.1f}" y1="{plot.top:g}" y2="{plot.bottom + 8:g}"/>'
        yield f'<text class="flagged" x="{x:.1f}" y="{plot.bottom + 24:g}" text-anchor="{_anchor(plot, x)}">{escape(text)}</text>'
    newest = line.rates[-1]
    yield f'<text class="value" x="{plot.x(len(line.rates) - 1) + 12:.1f}" y="{plot.y(newest) + 6:.1f}">{escape(show(newest))}</text>'


def _anchor(plot: _Plot, x: float) -> str:
    """Return which end of a text stands at x, so that the text stays within the chart."""
    third = plot.width / 3
    return "start" if x < third else "middle" if x < 2 * third else "end"

"""Draws the pictures of docs/statistics.md from simulated runs and the functions that decide about real ones.

`python -m tests.evaluators.drawn_statistics` writes docs/images/statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from evaluators.statistics.line import FEWEST_RUNS, Line, compare_with_line
from evaluators.statistics.line_members import AlertDecision, LineRun, members_after
from evaluators.statistics.looks import ONE_RUN, planned_levels
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange, MeasureRule, Sample
from evaluators.statistics.power import RateTestLevel, compute_power
from evaluators.statistics.regression import compare_headline, decide_overall
from evaluators.statistics.significance import jeffreys_variance

FOLDER = Path(__file__).resolve().parents[2] / "docs/images/statistics"
WIDTH = 720
BLACK, GREY, PALE, BLUE, RED, GREEN = "#1c1d1f", "#63656a", "#d9d8d3", "#4a3fd0", "#b3261e", "#1a7f4b"
PASS_RATE = MeasureRule("trial/pass", is_outcome=True, smallest_effect=0.05)
COLOURS = {ChangeVerdict.REGRESSED: RED, ChangeVerdict.IMPROVED: GREEN}


class Drawing:
    """An SVG on white, which every theme of a page shows alike."""

    def __init__(self, height: int, title: str) -> None:
        self.height = height
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            f'font-family="system-ui, sans-serif" font-size="14"><title>{escape(title)}</title>',
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>',
        ]

    def line(
        self, x1: float, y1: float, x2: float, y2: float, colour: str = PALE, width: float = 1.5
    ) -> None:
        self._parts.append(
            f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}" stroke-width="{width:g}"/>'
        )

    def path(self, points: Sequence[tuple[float, float]], colour: str) -> None:
        ends = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self._parts.append(f'<path d="M{ends}" fill="none" stroke="{colour}" stroke-width="2"/>')

    def dot(self, x: float, y: float, colour: str = BLACK, *, filled: bool = True, radius: float = 5) -> None:
        fill = colour if filled else "#fff"
        self._parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'
        )

    def box(self, x: float, y: float, width: float, height: float, colour: str = PALE) -> None:
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
        )

    def text(
        self, x: float, y: float, words: str, colour: str = BLACK, *, at: str = "start", bold: bool = False
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{at}"{weight}>{escape(words)}</text>'
        )

    def __str__(self) -> str:
        return "\n".join([*self._parts, "</svg>\n"])


def draw_chance() -> Drawing:
    """Differences of the pass rate between 2,000 pairs of runs without any change."""
    rng = np.random.default_rng(1)
    rates = rng.beta(8, 1.2, (2000, 10))
    before, after = (rng.binomial(5, rates).mean(axis=1) / 5 for _ in range(2))
    points = np.round((after - before) * 50).astype(int) * 2
    low, high = np.quantile(points, [0.025, 0.975])
    drawing = Drawing(220, "Differences between runs without any change")
    drawing.text(24, 32, "Two runs of the same 10 scenarios × 5 trials, nothing changed", bold=True)
    middle, step, bottom = WIDTH / 2, 13.0, 170.0
    shares = {value: float((points == value).mean()) for value in range(-24, 25, 2)}
    for value, share in shares.items():
        colour = BLUE if low <= value <= high else PALE
        drawing.box(middle + value * step - 10, bottom - share * 620, 20, share * 620, colour)
    drawing.line(24, bottom, WIDTH - 24, bottom, GREY)
    for value in (-20, -10, 0, 10, 20):
        drawing.text(middle + value * step, bottom + 20, f"{value:+d}".replace("-", "−"), GREY, at="middle")
    drawing.text(middle, 210, "points of pass rate, newer run minus older", GREY, at="middle")
    drawing.text(
        WIDTH - 24, 60, f"95 % lie between {low:+.0f} and {high:+.0f}".replace("-", "−"), BLUE, at="end"
    )
    return drawing


def samples(passes: Sequence[int], trials: int) -> dict[str, Sample]:
    """Return each scenario's passes of so many trials."""
    return {f"s{number + 1}": Sample(trials, count / trials) for number, count in enumerate(passes)}


def compared(before: Mapping[str, Sample], after: Mapping[str, Sample]) -> MeasureChange:
    """Return the pass rate's change."""
    return compare_headline([(PASS_RATE, before, after)])[0]


def draw_questions() -> Drawing:
    """One broken scenario, and a suite whose scenarios all fall."""
    old = samples([10, 10, 9, 10, 10, 9, 10, 10, 10, 10], 10)
    panels = {
        "One scenario broke": samples([10, 10, 10, 9, 0, 10, 10, 10, 10, 10], 10),
        "Every scenario fell": samples([8, 8, 7, 9, 8, 7, 8, 8, 9, 8], 10),
    }
    drawing = Drawing(340, "The two questions of a verdict")
    for panel, (title, new) in enumerate(panels.items()):
        left = 24 + panel * 350
        change = compared(old, new)
        drawing.text(left, 32, title, bold=True)
        for row, key in enumerate(new):
            y = 60 + row * 22
            first, last = (left + 40 + 220 * arm[key].mean for arm in (old, new))
            drawing.text(left, y + 5, key, GREY)
            drawing.line(first, y, last, y, PALE, 3)
            drawing.dot(first, y, GREY, filled=False)
            drawing.dot(last, y, RED if key in change.broke else BLUE)
        found = [f"{', '.join(change.broke)} broke."] if change.broke else []
        if change.verdict is ChangeVerdict.REGRESSED:
            found.append(f"The pass rate fell by {-100 * (change.effect or 0):.0f} points.")
        drawing.text(left, 300, decide_overall([change]).label, RED, bold=True)
        drawing.text(left, 322, " ".join(found), RED)
    return drawing


EXAMPLES: Sequence[tuple[ChangeVerdict, int, Sequence[int], Sequence[int]]] = (
    (ChangeVerdict.REGRESSED, 10, [9] * 10, [7] * 10),
    (ChangeVerdict.IMPROVED, 10, [7] * 10, [9] * 10),
    (ChangeVerdict.SMALL, 100, [95] * 10, [91] * 10),
    (ChangeVerdict.EQUIVALENT, 200, [198] * 20, [198] * 20),
    (ChangeVerdict.NO_EVIDENCE, 64, [58] * 12, [57] * 6 + [56] * 6),
    (ChangeVerdict.TOO_LITTLE, 3, [3] * 10, [3] * 7 + [2] * 3),
)
"""Trials of each scenario, and their passes before and after, that get each verdict."""


def draw_verdicts() -> Drawing:
    """The verdicts as intervals against zero and the smallest effect."""
    drawing = Drawing(300, "The verdicts as intervals")
    middle, step = 500.0, 6.0
    drawing.box(middle - 5 * step, 46, 10 * step, 200, "#f1f0ec")
    drawing.line(middle, 46, middle, 246, GREY)
    for row, (expected, trials, before, after) in enumerate(EXAMPLES):
        change = compared(samples(before, trials), samples(after, trials))
        if change.verdict is not expected:
            raise AssertionError(f"{expected} reads {change.verdict}")
        y, colour = 66 + row * 32, COLOURS.get(expected, BLUE)
        effect, lower, upper = (100 * (value or 0.0) for value in (change.effect, change.lower, change.upper))
        drawing.text(24, y + 5, expected.label, colour, bold=True)
        drawing.text(210, y + 5, f"{len(before)} × {trials}", GREY)
        drawing.line(middle + lower * step, y, middle + upper * step, y, colour, 3)
        drawing.dot(middle + effect * step, y, colour)
    for value in (-30, -20, -10, 0, 10, 20, 30):
        drawing.text(middle + value * step, 266, f"{value:+d}".replace("-", "−"), GREY, at="middle")
    drawing.text(24, 26, "What a comparison reads, by its 95 % interval", bold=True)
    drawing.text(middle, 288, "points of pass rate; the band is your smallest effect", GREY, at="middle")
    return drawing


def draw_power() -> Drawing:
    """The share of regressions that a comparison of two runs finds, by trials."""
    drawing = Drawing(280, "Regressions found, by trials")
    drawing.text(24, 28, "10 scenarios: share of regressions that two runs of so many trials find", bold=True)
    left, right, top, bottom = 64.0, 696.0, 52.0, 226.0
    tried = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)

    def place(trials: float, share: float) -> tuple[float, float]:
        return left + (right - left) * trials / 20, bottom - (bottom - top) * share

    for share in (0.0, 0.5, 0.8, 1.0):
        drawing.line(left, place(0, share)[1], right, place(0, share)[1], PALE, 1)
        drawing.text(left - 10, place(0, share)[1] + 5, f"{share:.0%}".replace("%", " %"), GREY, at="end")
    rates = np.sort(np.random.default_rng(1).beta(8, 1.2, 10)).tolist()
    suite, scenario = (
        RateTestLevel(ONE_RUN.pass_rate, PASS_RATE.smallest_effect),
        RateTestLevel(ONE_RUN.scenarios / len(rates)),
    )

    def falls(drop: float) -> Callable[[int], float]:
        return lambda trials: compute_power(rates, [trials] * len(rates), [trials] * len(rates), drop, suite)

    def breaks(trials: int) -> float:
        return compute_power([0.87], [trials], [trials], 0.85, scenario)

    for words, colour, share_of, at in (
        ("all −30 points", RED, falls(0.3), (1.0, 0.92)),
        ("one breaks", GREEN, breaks, (8.4, 0.78)),
        ("all −15 points", BLUE, falls(0.15), (12.3, 0.68)),
    ):
        drawing.path([place(trials, share_of(trials)) for trials in tried], colour)
        drawing.text(*place(*at), words, colour)
    for trials in (1, 5, 10, 15, 20):
        drawing.text(place(trials, 0)[0], bottom + 20, str(trials), GREY, at="middle")
    drawing.text((left + right) / 2, bottom + 42, "trials of each scenario in each run", GREY, at="middle")
    return drawing


BROKEN, FIXED = 8, 12


class DrawnRun(NamedTuple):
    """A run of a line, and how it compares with the line before it."""

    rate: float
    verdict: ChangeVerdict | None
    low: float
    high: float
    """Between which it would have been as before."""


def runs_on_a_line() -> list[DrawnRun]:
    """Return runs of 10 scenarios × 5 trials: eight as always, four after a drop of 25 points, five when it is fixed."""
    rng = np.random.default_rng(5)
    rates = rng.beta(8, 1.2, 10)
    runs: list[dict[str, Sample]] = []
    past: list[LineRun] = []
    drawn: list[DrawnRun] = []
    for number in range(17):
        drop = 0.25 if BROKEN <= number < FIXED else 0.0
        if number == FIXED:
            past = [
                replace(each, decision=AlertDecision.FIXED, decided=number) if each.decision else each
                for each in past
            ]
        new = samples(rng.binomial(5, np.clip(rates - drop, 0, 1)).tolist(), 5)
        members = members_after(past)
        earlier = [*(each.key for each in reversed(members.pending)), *members.newest]
        line = Line([runs[key] for key in earlier], len(members.pending))
        rate = float(np.mean([each.mean for each in new.values()]))
        if len(members.line) < FEWEST_RUNS:
            drawn.append(DrawnRun(rate, None, rate, rate))
            past.append(LineRun(number, finished=number))
        else:
            found = compare_with_line([(PASS_RATE, line, new)]).headline
            change, verdict = found[0], decide_overall(found)
            drawn.append(DrawnRun(rate, verdict, *(change.expected or (rate, rate))))
            is_red = verdict is ChangeVerdict.REGRESSED
            alerted = AlertDecision.OPEN if is_red and not members.pending else None
            past.append(LineRun(number, is_red=is_red, decision=alerted, finished=number))
        runs.append(new)
    return drawn


def draw_line() -> Drawing:
    """Runs on their line: what is as before joins it, and a regression freezes it."""
    runs = runs_on_a_line()
    drawing = Drawing(270, "Runs compared with their line")
    drawing.text(24, 28, "Each run against the runs before it", bold=True)
    left, step, top, height = 70.0, 37.0, 50.0, 160.0

    def y(rate: float) -> float:
        return top + height * (1.0 - rate) / 0.6

    for rate in (0.4, 0.6, 0.8, 1.0):
        drawing.text(left - 20, y(rate) + 5, f"{100 * rate:.0f} %", GREY, at="end")
    for number, run in enumerate(runs):
        x = left + number * step
        if run.verdict is not None:
            drawing.box(x - step / 2, y(run.high), step, y(run.low) - y(run.high), "#e8edf9")
        colour = BLUE if run.verdict is None else COLOURS.get(run.verdict, BLUE)
        drawing.dot(x, y(run.rate), colour, filled=run.verdict is not None)
        drawing.text(x, top + height + 24, str(number + 1), GREY, at="middle")
    first = next(number for number, run in enumerate(runs) if run.verdict is ChangeVerdict.REGRESSED)
    drawing.text(left + first * step - 14, y(runs[first].rate) + 5, "regressed", RED, at="end")
    drawing.text(
        left + 8 * step, top + height + 48, "run; the band is where it was expected", GREY, at="middle"
    )
    return drawing


def draw_looks() -> Drawing:
    """How large the pass rate's change must be to decide at each look, and a run that stops at the second."""
    drawing = Drawing(250, "Looks at a run until a verdict")
    drawing.text(24, 28, "Up to four looks: how large the change must be to stop", bold=True)
    left, step, middle, scale = 130.0, 165.0, 130.0, 1.5
    trials = (3, 6, 9, 12)
    seen = (-24.0, -27.0)
    bounds = []
    for look, count in enumerate(trials):
        (level, _) = planned_levels([(each / trials[-1],) * 2 for each in trials[: look + 1]])
        error = sqrt(2 * jeffreys_variance(0.87 * 10 * count, 10 * count) / (10 * count))
        bounds.append(100 * NormalDist().inv_cdf(1 - level / 2) * error)
    for look, (count, bound) in enumerate(zip(trials, bounds, strict=True)):
        x = left + look * step
        drawing.box(x - 40, middle - scale * bound, 80, 2 * scale * bound, "#e8edf9")
        drawing.text(x, 232, f"{count} trials", GREY, at="middle")
        drawing.text(x, middle - scale * bound - 6, f"±{bound:.0f} points", BLUE, at="middle")
    drawing.line(60, middle, WIDTH - 24, middle, GREY)
    drawing.text(50, middle + 5, "0", GREY, at="end")
    points = [(left + look * step, middle - scale * change) for look, change in enumerate(seen)]
    drawing.path(points, RED)
    for (x, y), is_decided in zip(points, (False, True), strict=True):
        drawing.dot(x, y, RED, filled=is_decided)
    drawing.text(points[1][0] + 12, points[1][1] - 4, "regressed", RED)
    return drawing


PICTURES = {
    "chance": draw_chance,
    "questions": draw_questions,
    "verdicts": draw_verdicts,
    "line": draw_line,
    "looks": draw_looks,
    "power": draw_power,
}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(str(draw()), encoding="utf-8")


if __name__ == "__main__":
    main()

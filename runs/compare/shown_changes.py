"""Prepare comparisons for pages: an alert's title, a verdict's reference, its measures and their plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from math import ceil
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from evalhub.lib.numbers import format_count, format_measure
from evalhub.web.csv_export import Cell, Table
from evalhub.web.states import look_of_state, sign_of_state
from evaluators.name_lists import list_names
from evaluators.statistics import verdict_sentences
from evaluators.statistics.measure_change import DECIDED, ChangeVerdict, MeasureChange, Scale
from evaluators.statistics.regression import decide_overall, find_deciding
from evaluators.statistics.verdict_sentences import describe_size
from runs.compare.amounts import drift_sentence
from runs.compare.differences import worse_after
from runs.compare.measure_changes import HEADLINE, PASS
from runs.models import Alert, Run
from runs.models.comparison import OF_AMOUNTS, AlertKind
from runs.results.measures import label_of_key, unit_of
from runs.results.rates import run_rate

_WHOLE = {AlertKind.DEARER: "the bill", AlertKind.SLOWER: "all trials"}


def alert_title(alert: Alert) -> str:
    """Return what an alert is called, such as `Regression` or `Worse after guidance 7`. Expects its run's baseline."""
    return worse_after(alert.run) if alert.kind == AlertKind.AFTER_CHANGE else alert.get_kind_display()


def alert_sentence(alert: Alert, change: MeasureChange | None) -> str:
    """Return what got worse, with its full stop; empty where the sizes of the measures say it.

    `change` is the run's change of the pass rate, of an alert of cost or time that of its measure.
    """
    if alert.kind == AlertKind.DRIFT:
        return drift_sentence(alert.drift)
    if change is None:
        return ""
    if alert.kind in OF_AMOUNTS:
        return _of_amount(AlertKind(alert.kind), change)
    if not alert.named:
        return ""
    if change.measure == PASS and change.verdict is ChangeVerdict.REGRESSED:
        return f"The whole suite fell; first {alert.named[0]}."
    noun = "Scenario" if len(alert.named) == 1 else "Scenarios"
    return f"{noun} {list_names(alert.named, 5)} broke."


def _of_amount(kind: AlertKind, change: MeasureChange) -> str:
    """Return a sentence such as `A typical trial +12 %, the bill +45 %.`"""
    typical = f"A typical trial {describe_size(change, change.effect)}"
    if not change.before or change.after is None:
        return f"{typical}."
    return f"{typical}, {_WHOLE[kind]} {describe_size(change, change.after / change.before - 1)}."


@dataclass(frozen=True)
class ShownRun:
    """A run that a verdict was made with."""

    run: Run
    changed_later: bool
    """Its results changed after the verdict."""

    @property
    def pass_rate(self) -> float | None:
        """From 0 to 1; None if none of its trials passed or failed."""
        rate = run_rate(self.run)
        return rate.share if rate.n else None


@dataclass(frozen=True)
class ShownReference:
    """What a stored verdict was made with."""

    runs: tuple[ShownRun, ...]
    """The runs of the line, newest first; empty if the baseline alone is it."""
    gone: int
    """Runs of the line that were deleted since."""
    best_of: int
    """Among how many runs the pinned one is the best, so that others look worse than they are; 0 if it isn't."""

    @property
    def has_changed(self) -> bool:
        """Whether one of its runs changed or was deleted after the verdict."""
        return bool(self.gone) or any(each.changed_later for each in self.runs)


def shown_reference(run: Run) -> ShownReference | None:
    """Return the reference of a run's verdict; None without a verdict and in runs of older releases. One query."""
    stored = run.old_side
    if not stored:
        return None
    keys, compared = stored["runs"], datetime.fromisoformat(stored["compared"])
    runs = Run.objects.in_bulk(keys) if keys else {}
    shown = [runs[key] for key in keys if key in runs]
    return ShownReference(
        tuple(ShownRun(each, bool(each.rollups_at and each.rollups_at > compared)) for each in shown),
        len(keys) - len(shown),
        stored["best_of"],
    )


def reference_words(stored: Mapping[str, Any], baseline: int | None) -> str:
    """Return the name of a verdict's reference, such as `its line of 10 runs` or `run 7`, from `Run.old_side`."""
    if runs := len(stored.get("runs", ())):
        return f"its line of {format_count(runs, 'run')}"
    return f"{'the pinned ' if stored.get('is_pinned') else ''}run {baseline}"


def since_words(stored: Mapping[str, Any]) -> str:
    """Return since when a regression is undecided, such as ` since run 6`, or of a calm run how far its line has fallen.

    Empty where neither is known.
    """
    if since := stored.get("since"):
        return f" since run {since}"
    if not (fell := stored.get("fell")):
        return ""
    days = fell["days"]
    ago = f"{format_count(days, 'day')} ago" if days else "its oldest runs"
    if 25 <= days <= 35:
        ago = "a month ago"
    return f", {fell['by'] * 100:.0f} points below {ago}"


def reference_json(run: Run) -> dict[str, Any] | None:
    """Return the reference of a run's verdict for REST; None without a verdict."""
    stored = run.old_side
    return {name: stored[name] for name in ("runs", "since", "is_pinned", "compared")} if stored else None


IN_FOREST = ("trial/cost_usd", "trial/seconds", "interaction/total_commands", "trial/tokens_in")
"""Measures of the forest plot beside the headline."""
WIDTH, HEIGHT = 420, 26
"""Pixels of a row of the forest plot."""
EDGE = 8.0


@dataclass(frozen=True)
class ShownChange:
    """A measure's change as texts."""

    change: MeasureChange
    dollars_a_trial: float | None = None
    called: str = ""
    """What the measure is called here, if not by its usual label."""

    @property
    def label(self) -> str:
        return self.called or label_of_key(self.change.measure)

    @property
    def verdict(self) -> str:
        return self.change.verdict.value

    @property
    def size(self) -> str:
        return verdict_sentences.describe_size(self.change, self.change.effect)

    @property
    def interval(self) -> str:
        return verdict_sentences.describe_interval(self.change)

    @property
    def explanation(self) -> str:
        return verdict_sentences.explain_verdict(self.change, dollars_a_trial=self.dollars_a_trial)

    @property
    def worse(self) -> str:
        return verdict_sentences.scenarios_worse(self.change)

    @property
    def p(self) -> str:
        return verdict_sentences.p_text(self.change.p_corrected)

    @property
    def p_uncorrected(self) -> str:
        return verdict_sentences.p_text(self.change.p)

    @property
    def detectable(self) -> str:
        return verdict_sentences.describe_size(self.change, self.change.detectable, signed=False)

    @property
    def test(self) -> str:
        return verdict_sentences.TESTS[self.change.test]

    @property
    def direction(self) -> str:
        """Return `better` or `worse` for a verdict, else empty: differences alone have no colour."""
        return sign_of_state(self.verdict)[1] if self.change.verdict in DECIDED else ""

    @property
    def row(self) -> ComparedMeasure:
        """Return the measure as a row of a table."""
        name = self.change.measure
        unit = unit_of(*name.split("/", 1))[0]
        return ComparedMeasure(self.label, unit, self.change.before, self.change.after, self, name)


@dataclass(frozen=True)
class ComparedMeasure:
    """A measure on two sides: of runs, arms, versions of guidance or trials."""

    label: str
    unit: str
    base: float | None
    """None if not measured."""
    new: float | None
    change: ShownChange | None = None
    """None where nothing can be compared."""
    name: str = ""
    """Its layer and name; empty for a value that only trials have."""

    @property
    def sign(self) -> str:
        """Return how the base relates to the new value; empty if one is not measured."""
        if self.base is None or self.new is None:
            return ""
        return "=" if self.base == self.new else "<" if self.base < self.new else ">"

    @property
    def is_not_significant(self) -> bool:
        """Return whether chance can explain the difference."""
        return bool(
            self.change and self.change.change.effect and self.change.verdict in ("no_evidence", "too_little")
        )


def measure_table(
    name: str,
    rows: Iterable[ComparedMeasure],
    sides: tuple[str, str] = ("base", "new"),
    *,
    tested: bool = True,
) -> Table:
    """Return measures as CSV; differences are from 0 to 1, on the relative scale shares of the first side.

    Trials aren't `tested`: only their values are listed.
    """
    columns = ("measure", "unit", *sides)
    if not tested:
        return Table(name, columns, ((row.label, row.unit, row.base, row.new) for row in rows))
    header = (
        *(*columns, "difference", "low_95", "high_95", "scale", "verdict", "scenarios"),
        *(*(f"{side}_trials" for side in sides), "worse", "better", "p", "p_corrected", "detectable", "test"),
    )
    return Table(
        name, header, ((row.name, row.unit, row.base, row.new, *_tested(row.change)) for row in rows)
    )


def _tested(shown: ShownChange | None) -> tuple[Cell, ...]:
    if shown is None:
        return (*[None] * 4, "not_comparable", *[None] * 9)
    change = shown.change
    return (
        *(change.effect, change.lower, change.upper, change.scale.value, change.verdict.value),
        *(change.scenarios, *change.trials, change.worse, change.better, change.p, change.p_corrected),
        *(change.detectable, change.test.value),
    )


@dataclass(frozen=True)
class ForestRow:
    """A measure in a forest plot."""

    shown: ShownChange
    before: str
    after: str
    picture: SafeString
    section: str = ""
    """The heading of the row and those below; empty under the same heading as the row above."""


@dataclass(frozen=True)
class ForestGroup:
    """Measures on one axis."""

    is_relative: bool
    """Whether effects are shares of the value before, not points."""
    end: str
    """What the axis ends with, such as `40`."""
    rows: tuple[ForestRow, ...]


@dataclass(frozen=True)
class ShownVerdict:
    """The verdict of a comparison with its measures."""

    verdict: ChangeVerdict
    headline: tuple[ShownChange, ...]
    others: tuple[ShownChange, ...]

    @property
    def label(self) -> str:
        return self.worse_undecided or self.verdict.label

    @property
    def worse_undecided(self) -> str:
        """Return by how much the run is worse if that is undecided, else nothing."""
        return verdict_sentences.worse_undecided(self.verdict, self.headline[0].change)

    @property
    def deciding(self) -> ShownChange:
        """Return the measure that the verdict is about."""
        deciding = find_deciding([each.change for each in self.headline])
        return next(each for each in self.headline if each.change is deciding)

    @property
    def rows(self) -> list[ComparedMeasure]:
        """Return all measures, headline first."""
        return [each.row for each in (*self.headline, *self.others)]

    @property
    def forest(self) -> list[ForestGroup]:
        """Return the headline measures, and cost, time and commands: on an axis of points, and on one of shares."""
        others = {each.change.measure: each for each in self.others}
        chosen = [*self.headline, *(others[name] for name in IN_FOREST if name in others)]
        return draw_forest([("", chosen)])


Section = tuple[str, Sequence[ShownChange]]
"""A title, which may be empty, and measures below it."""


def draw_forest(sections: Sequence[Section]) -> list[ForestGroup]:
    """Return the measures with an effect on an axis of points and on one of shares, each shared by all sections."""
    drawn = [
        (title, change)
        for title, changes in sections
        for change in changes
        if change.change.effect is not None
    ]
    by_scale = [[each for each in drawn if each[1].change.scale is scale] for scale in Scale]
    return [_group(own) for own in by_scale if own]


def _group(titled: Sequence[tuple[str, ShownChange]]) -> ForestGroup:
    shown = [shown_change for _, shown_change in titled]
    reach = [
        max(
            abs(value)
            for value in (shown_change.change.effect, shown_change.change.lower, shown_change.change.upper)
            if value is not None
        )
        for shown_change in shown
    ]
    least = 2 * max(shown_change.change.smallest_effect for shown_change in shown)
    span = min(1.0, ceil(10 * max(*reach, least)) / 10)
    before = ("", *(title for title, _ in titled))
    rows = tuple(
        _row(shown_change, span, title if title != last else "")
        for (title, shown_change), last in zip(titled, before, strict=False)
    )
    return ForestGroup(shown[0].change.scale is Scale.RELATIVE, f"{span * 100:.0f}", rows)


def _row(shown: ShownChange, span: float, section: str) -> ForestRow:
    change = shown.change
    # Right is better in every row.
    sign = -1 if change.better_is == "lower" else 1
    ends = (
        None if change.lower is None or change.upper is None else (sign * change.lower, sign * change.upper)
    )
    label = f"{shown.label} {shown.size}{f', 95 % interval {shown.interval}' if shown.interval else ''}"
    picture = _draw_effect(
        sign * (change.effect or 0.0),
        ends,
        span=span,
        smallest=change.smallest_effect,
        look=look_of_state(shown.verdict)[0],
        label=label,
    )
    return ForestRow(
        shown,
        _value(change.measure, change.before),
        _value(change.measure, change.after),
        picture,
        section,
    )


def _draw_effect(
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


def _value(name: str, value: float | None) -> str:
    layer, _, measure = name.partition("/")
    unit = unit_of(layer, measure)[0]
    return format_measure(value, unit)


def shown_verdict(
    changes: Sequence[MeasureChange], *, dollars_a_trial: float | None = None
) -> ShownVerdict | None:
    """Return a comparison for its page; None without a pass rate, which is where nothing was compared."""
    shown = [ShownChange(change, dollars_a_trial) for change in changes]
    headline = tuple(each for each in shown if each.change.measure in HEADLINE)
    if not any(each.change.measure == PASS for each in headline):
        return None
    others = tuple(each for each in shown if each.change.measure not in HEADLINE)
    return ShownVerdict(decide_overall([each.change for each in headline]), headline, others)

"""Read two versions of guidance for their page, and draw the row of versions and the heat map below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from evalhub.lib.numbers import format_count, format_money, format_percent
from evalhub.web.states import look_of_state
from evalhub.web.version_strip import VersionPoint, draw_versions
from evaluators.statistics.measure_change import DECIDED, ChangeVerdict, Scale
from runs.compare.guidance.guidance_comparison import (
    FoundSetting,
    RunsBySide,
    by_change,
    settings_of,
    unusable_runs,
)
from runs.compare.guidance.guidance_findings import (
    DocumentDifference,
    ExposureLevel,
    Reasons,
    list_differences,
    read_findings,
)
from runs.compare.guidance.guidance_matrix import (
    COST,
    FIRST_TRY,
    GuidanceMatrix,
    GuidanceStrip,
    MatrixCell,
    ScenarioMeans,
    StripVersion,
)
from runs.compare.guidance.lift_answer import (
    ADDS,
    SHARE,
    SHARE_LABEL,
    LiftAnswer,
    compared_measures,
    read_lift_answer,
)
from runs.compare.guidance.lift_findings import Lift, is_lift, read_lift, why_no_results
from runs.compare.measure_changes import PASS, RunComparison
from runs.compare.shown_changes import ForestGroup, ShownChange, ShownVerdict, draw_forest, shown_verdict
from runs.results.rates import Rate
from scenarios.differences import lines_of, text_difference
from scenarios.models import Guidance

HEATS = 5
Ends = tuple[float, float]
Show = Callable[[float], str]


@dataclass(frozen=True)
class ShownVersion:
    """The head of a column: a version, and how it compares with the one before it."""

    version: StripVersion
    lines: str
    """How many lines it added and removed, such as `+3 −1 lines`."""

    @property
    def verdict(self) -> ChangeVerdict | None:
        return self.version.against.verdict if self.version.against else None

    @property
    def word(self) -> str:
        """The verdict as the column says it."""
        if self.version.before is None:
            return "first"
        return self.verdict.label.lower() if self.verdict else "not compared"

    @property
    def is_verdict(self) -> bool:
        """Whether the word has a badge."""
        return self.verdict in DECIDED


@dataclass(frozen=True)
class StripRow:
    """A measure over the versions."""

    label: str
    picture: SafeString
    """Empty if no version has the measure."""


@dataclass(frozen=True)
class HeatCell:
    """A pair of tool and guidance version in the heat map."""

    guidance: Guidance
    cell: MatrixCell

    @property
    def heat(self) -> int:
        """Return 0 to 5: the higher, the larger the share that failed."""
        return round((1 - self.cell.rate.share) * HEATS) if self.cell.rate.n else 0

    @property
    def more(self) -> str:
        """Say what the cell has no room for."""
        cell, rate = self.cell, self.cell.rate
        parts = [f"95 % interval {format_percent(rate.low)} to {format_percent(rate.high)}"] if rate.n else []
        parts.append(f"first-try success {_with_interval(cell.first_try, format_percent)}")
        parts.append(
            "no cost reported"
            if cell.cost.mean is None
            else f"{_with_interval(cell.cost, format_money)} per trial"
        )
        number = len(cell.runs)
        parts.append(
            f"newest {number} of {number + cell.older} runs" if cell.older else format_count(number, "run")
        )
        return ", ".join(parts)


def shown_versions(strip: GuidanceStrip) -> list[ShownVersion]:
    """Return the heads of the columns."""
    return [ShownVersion(each, _changed_lines(each.before, each.guidance)) for each in strip.versions]


def strip_rows(strip: GuidanceStrip, matrix: GuidanceMatrix) -> list[StripRow]:
    """Return pass rate, first-try success and cost over the versions, rates on one axis."""
    cells = [matrix.cell(each.tool_version, each.guidance) or MatrixCell() for each in strip.versions]
    passed = [_point(each, PASS, *_pass_rate(cell)) for each, cell in _pairs(strip, cells)]
    first = [_point(each, _name(FIRST_TRY), *_means(cell.first_try)) for each, cell in _pairs(strip, cells)]
    cost = [
        _point(each, _name(COST), *_means(cell.cost), show=format_money)
        for each, cell in _pairs(strip, cells)
    ]
    lowest = min(
        (each.ends[0] if each.ends else each.value for each in (*passed, *first) if each), default=0.0
    )
    start = 0.5 if lowest >= 0.5 else 0.0
    # An interval over few scenarios can be so wide that it would flatten the points.
    dearest = 1.6 * max((each.value for each in cost if each), default=0.0)
    return [
        _row("Pass rate", PASS, strip, passed, (start, 1.0), format_percent),
        _row("First-try success", _name(FIRST_TRY), strip, first, (start, 1.0), format_percent),
        _row("Cost per trial", _name(COST), strip, cost, (0.0, dearest), format_money),
    ]


def heat_rows(matrix: GuidanceMatrix) -> list[tuple[str, list[HeatCell | None]]]:
    """Return the rows of the heat map by tool version."""
    return [
        (
            tool,
            [
                HeatCell(guidance, cell) if cell else None
                for guidance, cell in zip(matrix.guidance, cells, strict=True)
            ],
        )
        for tool, cells in matrix.rows
    ]


def _pairs(strip: GuidanceStrip, cells: Sequence[MatrixCell]) -> Iterator[tuple[StripVersion, MatrixCell]]:
    return zip(strip.versions, cells, strict=True)


def _name(measure: tuple[str, str]) -> str:
    return "/".join(measure)


def _pass_rate(cell: MatrixCell) -> tuple[float | None, Ends | None]:
    rate = cell.rate
    return (rate.share, (rate.low, rate.high)) if rate.n else (None, None)


def _means(measured: ScenarioMeans) -> tuple[float | None, Ends | None]:
    return measured.mean, measured.interval


def _point(
    version: StripVersion,
    measure: str,
    value: float | None,
    ends: Ends | None,
    *,
    show: Show = format_percent,
) -> VersionPoint | None:
    if value is None:
        return None
    change = version.against.change(measure) if version.against else None
    if change is None or change.effect is None:
        return VersionPoint(value, ends, show(value))
    grown = 1 + change.effect
    if change.scale is Scale.RELATIVE:
        before: float | None = value / grown if grown > 0 else None
    else:
        before = value - change.effect
    return VersionPoint(value, ends, show(value), look_of_state(change.verdict)[0], before)


def _row(
    label: str,
    measure: str,
    strip: GuidanceStrip,
    points: Sequence[VersionPoint | None],
    axis: Ends,
    show: Show,
) -> StripRow:
    if not any(points):
        return StripRow(label, SafeString(""))
    described = (
        _describe(version, measure, point, show)
        for version, point in zip(strip.versions, points, strict=True)
    )
    start, end = axis
    return StripRow(
        label, draw_versions(points, start=start, end=end, label=f"{label}: {'; '.join(described)}")
    )


def _describe(version: StripVersion, measure: str, point: VersionPoint | None, show: Show) -> str:
    """Return a version's value with its interval, and its difference to the version before it."""
    if point is None:
        return f"{version.guidance} not measured"
    ends = f", 95 % interval {show(point.ends[0])} to {show(point.ends[1])}" if point.ends else ""
    change = version.against.change(measure) if version.against else None
    if change is None or change.effect is None:
        return f"{version.guidance} {point.text}{ends}"
    shown = ShownChange(change)
    interval = f" ({shown.interval})" if shown.interval else ""
    verdict = change.verdict.label.lower()
    return (
        f"{version.guidance} {point.text}{ends}, {shown.size}{interval} against {version.before}: {verdict}"
    )


def _with_interval(measured: ScenarioMeans, show: Show) -> str:
    if measured.mean is None:
        return "not measured"
    ends = measured.interval
    return show(measured.mean) + (f" ({show(ends[0])} to {show(ends[1])})" if ends else "")


def _changed_lines(before: Guidance | None, after: Guidance) -> str:
    """Return how many lines a version added and removed; of the first, how many it has."""
    old, new = (
        {each["path"]: each["content"] for each in side.files} if side else {} for side in (before, after)
    )
    added = removed = 0
    for path in old.keys() | new.keys():
        difference = text_difference(lines_of(old.get(path, "")), lines_of(new.get(path, "")))
        if difference is None:
            return "a long text"
        added, removed = added + difference.added, removed + difference.removed
    if before is None:
        return format_count(added, "line")
    signs = " ".join([*([f"+{added}"] if added else []), *([f"−{removed}"] if removed else [])])
    return f"{signs} line{'' if added + removed == 1 else 's'}" if signs else "same text"


@dataclass(frozen=True)
class GuidanceAgainst:
    """Content of the page."""

    before: Guidance
    after: Guidance
    documents: Sequence[DocumentDifference]
    settings: Sequence[FoundSetting]
    chosen: RunsBySide | None
    """None where no setting had both versions."""
    compared: RunComparison | None = None
    verdict: ShownVerdict | None = None
    scenarios: Sequence[ShownChange] = ()
    """The pass rate of each scenario, called by its key."""
    reasons: Sequence[Mapping[str, Reasons]] = ({}, {})
    """What the judge wrote of scenarios on both sides, by key."""
    levels: Sequence[ExposureLevel] = ()
    lift: Lift | None = None
    """What the skill adds, where the first version is the second without it."""
    stopped: Sequence[str] = ()
    """Why runs of the named launch, or of the newest one if nothing can be compared, measured nothing."""
    other_lifts: Sequence[LiftAnswer] = ()
    """The same without statements for each other setting in which both ran in turn."""

    @property
    def lift_rates(self) -> tuple[float | None, float | None] | None:
        """The pass rates without and with the skill; None while trials run, and where nothing could be compared."""
        change = (
            self.lift.compared.pass_rate if self.lift and self.chosen and not self.chosen.is_open else None
        )
        return (change.before, change.after) if change else None

    @property
    def opened_rate(self) -> Rate | None:
        """How many of the trials with the skill opened it; None where no agent's events would show it."""
        levels = self.levels if self.lift else ()
        return next((level.after for level in levels if level.name == "opened" and level.after.n), None)

    @property
    def lift_forest(self) -> list[ForestGroup]:
        """Return what the skill adds in each setting, and what changed since its previous version, as one picture."""
        sections = []
        for lift in (self.lift, *self.other_lifts) if self.lift else ():
            where = lift.chosen.setting.label
            sections.append((f"{where}: without → with the skill", _shown_measures(lift.compared)))
            if lift.previous:
                title = f"{where}: previous version, {lift.previous.guidance} → this one"
                sections.append((title, _shown_measures(lift.previous.compared)))
        return draw_forest(sections)

    @property
    def input_tokens(self) -> ShownChange | None:
        """The change of the input tokens of a trial."""
        if self.verdict is None:
            return None
        return next((each for each in self.verdict.others if each.change.measure == "trial/tokens_in"), None)

    @property
    def name(self) -> str:
        """Return what files about it are called."""
        return f"guidance-{self.before.pk}-{self.after.pk}"


def guidance_against(
    before: Guidance, after: Guidance, *, setting: str = "", launch: int | None = None
) -> GuidanceAgainst:
    """Return two versions compared in one setting, by its label; else the first. Up to nine queries.

    Of a skill against no skill also what it adds: six more, up to eight for each other setting, and six for each
    previous version beside it.
    """
    settings = settings_of(before, after, launch)
    found_setting = next(
        (each for each in settings if each.setting.label == setting), next(iter(settings), None)
    )
    missing = unusable_runs(before, after, launch) if launch or found_setting is None else []
    stopped = [why_no_results(run) for run in missing]
    if found_setting is None:
        return GuidanceAgainst(
            before, after, list_differences(before, after), settings, None, stopped=stopped
        )
    chosen = found_setting.load()
    pair_findings = read_findings(before, after, chosen)
    of_skill = is_lift(before, after)
    others = [each.load() for each in settings if of_skill and each.interleaved and each is not found_setting]
    return GuidanceAgainst(
        before,
        after,
        pair_findings.documents,
        settings,
        chosen,
        pair_findings.compared,
        shown_verdict([*pair_findings.compared.headline, *pair_findings.compared.others]),
        [ShownChange(change, called=key) for key, change in by_change(pair_findings.compared)],
        (pair_findings.before, pair_findings.after),
        pair_findings.levels,
        read_lift(chosen, pair_findings.compared) if of_skill else None,
        stopped,
        [read_lift_answer(other, read_findings(before, after, other).compared) for other in others],
    )


def _shown_measures(compared: RunComparison) -> list[ShownChange]:
    """Return the measures that a lift is about."""
    named = compared_measures(compared)
    return [
        ShownChange(named[name], called=SHARE_LABEL if name == SHARE else "")
        for name in (PASS, *ADDS)
        if name in named
    ]

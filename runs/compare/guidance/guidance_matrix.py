"""A suite's guidance versions: against tool versions as a matrix, and each against the one before it."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from statistics import fmean

from django.db.models import Avg, Q

from evalhub.teams.models import Project
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from evaluators.statistics.significance import t_interval
from runs.compare.guidance.guidance_comparison import (
    MOST_RUNS,
    Place,
    SharedSetting,
    list_run_places,
    read_guidance_runs,
    run_place,
    setting_of_pair,
)
from runs.compare.guidance.guidance_findings import Findings, Pair, findings_of_pairs
from runs.compare.guidance.lift_findings import without_bare_arms
from runs.models import Measure, Run, RunMeasure
from runs.results.counting import countings_of
from runs.results.rates import Rate
from scenarios.adopted_guidance import last_guidance
from scenarios.models import Guidance, Suite

FIRST_TRY = ("interaction", "first_try_success_rate")
COST = ("trial", "cost_usd")


@dataclass
class ScenarioMeans:
    """A measure over the scenarios of several runs."""

    highest: float
    """The largest value that the measure can have."""
    means: list[float] = field(default_factory=list)
    """Each scenario's mean of the runs' means."""

    @property
    def mean(self) -> float | None:
        """The mean of the scenarios' means; None if not measured."""
        return fmean(self.means) if self.means else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Student's 95 % interval over scenarios, within the measure's range; None below two, or if all are equal."""
        if len(set(self.means)) < 2:
            return None
        low, high = t_interval(self.means, 0.95)
        return max(0.0, low), min(self.highest, high)


@dataclass
class MatrixCell:
    """The newest finished runs of one tool version with one guidance."""

    runs: list[int] = field(default_factory=list)
    older: int = 0
    """Runs that are left out."""
    passed: int = 0
    judged: int = 0
    rates: list[float] = field(default_factory=list)
    first_try: ScenarioMeans = field(default_factory=lambda: ScenarioMeans(1.0))
    cost: ScenarioMeans = field(default_factory=lambda: ScenarioMeans(inf))
    """US dollars a trial."""

    @property
    def rate(self) -> Rate:
        return Rate(self.passed, self.judged, fmean(self.rates) if self.rates else None)


@dataclass(frozen=True)
class GuidanceMatrix:
    """Rows by tool version, newest first; columns by guidance."""

    guidance: Sequence[Guidance]
    rows: Sequence[tuple[str, Sequence[MatrixCell | None]]]
    counted: Sequence[str] = ()
    """How commands are counted in these runs, in words, where they differ."""

    def cell(self, tool_version: str, guidance: Guidance) -> MatrixCell | None:
        """Return the cell of a pair; None if it didn't run."""
        row = dict(self.rows).get(tool_version)
        return row[list(self.guidance).index(guidance)] if row else None


def guidance_matrix(suite: Suite, versions: Sequence[Guidance], runs: Sequence[Run]) -> GuidanceMatrix:
    """Return the matrix of versions over these runs of a suite, which are newest first. Three queries."""
    shown = {each.pk for each in versions}
    cells: dict[tuple[str, int], MatrixCell] = {}
    counted: set[str] = set()
    for run in runs:
        if run.guidance_id not in shown:
            continue
        cell = cells.setdefault((run.tool_version, run.guidance_id), MatrixCell())
        if len(cell.runs) == MOST_RUNS:
            cell.older += 1
            continue
        cell.runs.append(run.pk)
        counted.update(each.words for each in countings_of(run.counting))
        cell.passed += run.passed
        cell.judged += run.passed + run.failed
        cell.rates += [] if run.pass_rate is None else [run.pass_rate]
    _read_measures(suite, cells)
    tools = dict.fromkeys(tool for tool, _ in cells)
    return GuidanceMatrix(
        versions,
        [(tool, [cells.get((tool, each.pk)) for each in versions]) for tool in tools],
        sorted(counted) if len(counted) > 1 else (),
    )


def _read_measures(suite: Suite, cells: dict[tuple[str, int], MatrixCell]) -> None:
    """Add first-try success and cost to the cells. Three queries.

    Scenarios and measures are named, so that an index finds the rows whatever other suites have.
    """
    wanted = [Q(layer=layer, name=name) for layer, name in (FIRST_TRY, COST)]
    layers = dict(Measure.objects.filter(wanted[0] | wanted[1]).values_list("pk", "layer"))
    scenarios = list(suite.scenarios.values_list("pk", flat=True))
    runs = [pk for cell in cells.values() for pk in cell.runs]
    rows = RunMeasure.objects.filter(run__in=runs, scenario__in=scenarios, measure__in=list(layers))
    groups = rows.values_list("run__tool_version", "run__guidance", "scenario", "measure")
    for tool, guidance, _, measure, mean in groups.annotate(mean_of_runs=Avg("mean")):
        cell = cells[tool, guidance]
        (cell.cost if layers[measure] == COST[0] else cell.first_try).means.append(mean)


MOST_READ = 1_000
"""The newest runs of a suite that are looked through."""
MOST_VERSIONS = 6


@dataclass(frozen=True)
class ComparedVersion:
    """Two versions compared in the setting in which their page opens."""

    before: Guidance
    after: Guidance
    setting: SharedSetting
    findings: Findings

    @property
    def verdict(self) -> ChangeVerdict | None:
        return self.findings.compared.verdict

    def change(self, measure: str) -> MeasureChange | None:
        """Return a measure's change by its name, such as `trial/pass`; None if it wasn't compared."""
        compared = self.findings.compared
        return next(
            (each for each in (*compared.headline, *compared.others) if each.measure == measure), None
        )


@dataclass(frozen=True)
class StripVersion:
    """A version in its place in the strip."""

    guidance: Guidance
    before: Guidance | None
    """The version before it in the strip; None for the first."""
    against: ComparedVersion | None
    """Compared with it; None for the first, and where no setting had both."""
    tool_version: str
    """That of the comparison, else of its newest run."""


@dataclass(frozen=True)
class GuidanceStrip:
    """A suite's versions that ran in one place."""

    suite: Suite
    adopted: Guidance | None
    """What the suite uses."""
    places: Sequence[Place]
    """Where versions ran, the one with most of them first."""
    place: Place | None
    """The chosen one; None without runs."""
    versions: Sequence[StripVersion] = ()
    """In the order in which they were made."""
    runs: Sequence[Run] = ()
    """The runs of the place, newest first."""
    against_adopted: Mapping[int, ComparedVersion] = field(default_factory=dict)
    """Each other version compared with the adopted one, by its key, where a setting had both."""

    @property
    def document(self) -> str:
        """The name of the documents if they are one, else `guidance`."""
        paths = {file["path"] for version in self.versions for file in version.guidance.files}
        return posixpath.basename(paths.pop()) if len(paths) == 1 else "guidance"


def guidance_strip(suite: Suite, place: str = "") -> GuidanceStrip:
    """Return a suite's newest versions that ran in a place, by its label; else in that with most versions.

    Four queries where the comparisons are stored, up to eight more for each that isn't.
    """
    runs = read_guidance_runs(suite, most=MOST_READ)
    places, adopted = list_run_places(runs), last_guidance(suite)
    chosen = next((each for each in places if each.label == place), next(iter(places), None))
    if chosen is None:
        return GuidanceStrip(suite, adopted, places, None)
    place_runs = [run for run in runs if run_place(run) == chosen]
    versions = _newest_versions(suite, {run.guidance_id for run in place_runs}, adopted)
    consecutive = list(pairwise(versions))
    others = [(adopted, each) for each in versions if each != adopted] if adopted in versions else []
    compared = compare_pairs(suite.project, [*consecutive, *((a, b) for a, b in others if a)], place_runs)
    return GuidanceStrip(
        suite,
        adopted,
        places,
        chosen,
        [
            _strip_version(
                version, before, compared.get((before.pk, version.pk)) if before else None, place_runs
            )
            for before, version in zip((None, *versions), versions, strict=False)
        ],
        place_runs,
        {each.pk: compared[a.pk, each.pk] for a, each in others if a and (a.pk, each.pk) in compared},
    )


def compare_pairs(
    project: Project, pairs: Sequence[tuple[Guidance, Guidance]], runs: Sequence[Run]
) -> dict[tuple[int, int], ComparedVersion]:
    """Return pairs of versions by their keys, compared over these runs; without those that no setting had both of.

    One query where all are stored, up to eight more for each that isn't.
    """
    with_setting: dict[tuple[int, int], Pair] = {}
    for before, after in pairs:
        setting = setting_of_pair(runs, before.pk, after.pk)
        if setting:
            with_setting[before.pk, after.pk] = (before, after, setting)
    measured = {run.pk: run.rollups_at for run in runs}
    findings = findings_of_pairs(project, list(with_setting.values()), measured) if with_setting else []
    return {
        key: ComparedVersion(before, after, setting.setting, pair_findings)
        for (key, (before, after, setting)), pair_findings in zip(with_setting.items(), findings, strict=True)
    }


def _newest_versions(suite: Suite, ran: set[int | None], adopted: Guidance | None) -> list[Guidance]:
    """Return the newest of the versions that ran, with the adopted one, in the order of their numbers. One query."""
    versions = list(suite.guidance.filter(pk__in=ran).select_related("created_by").order_by("-number"))
    versions = without_bare_arms(versions, adopted)
    shown = versions[:MOST_VERSIONS]
    if adopted in versions and adopted not in shown:
        shown[-1] = versions[versions.index(adopted)]
    for version in shown:
        version.suite = suite
    return shown[::-1]


def _strip_version(
    guidance: Guidance, before: Guidance | None, against: ComparedVersion | None, runs: Sequence[Run]
) -> StripVersion:
    newest = next(run.tool_version for run in runs if run.guidance_id == guidance.pk)
    return StripVersion(guidance, before, against, against.setting.tool_version if against else newest)

"""A suite's guidance versions in the order in which they were made, each compared with the one before it."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from evalhub.teams.models import Project
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from runs.compare.guidance.guidance_findings import Findings, Pair, findings_of_pairs
from runs.compare.guidance.guidance_runs import (
    Place,
    SharedSetting,
    place_of,
    places_of,
    read_guidance_runs,
    setting_of_pair,
)
from runs.compare.guidance.lift_findings import without_bare_arms
from runs.models import Run
from scenarios.adopted_guidance import last_guidance
from scenarios.models import Guidance, Suite

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
    places, adopted = places_of(runs), last_guidance(suite)
    chosen = next((each for each in places if each.label == place), next(iter(places), None))
    if chosen is None:
        return GuidanceStrip(suite, adopted, places, None)
    place_runs = [run for run in runs if place_of(run) == chosen]
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

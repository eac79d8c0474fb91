"""Suites with what was run of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Max, Q

from evalhub.teams.models import Project
from runs.models import Run, Target
from runs.warehouse.history import RunRow, rows, runs_of
from runs.warehouse.strips import Strip, strips
from scenarios.models import Guidance, Scenario, Suite, SuiteEntry, SuiteVersion


@dataclass(frozen=True)
class SuiteRow:
    """A suite in the list."""

    suite: Suite
    version: SuiteVersion | None
    scenarios: int
    latest: RunRow | None


def suite_rows(project: Project) -> list[SuiteRow]:
    """Return a project's suites with their newest version and run. Six queries."""
    suites = list(Suite.objects.filter(project=project).annotate(newest=Max("versions__pk"), last_run=Max("runs__pk")))
    versions = SuiteVersion.objects.select_related("created_by").defer("targets_text", "config", "lints").annotate(
        size=Count("entries")
    )
    newest = {version.pk: version for version in versions.filter(pk__in=_known(each.newest for each in suites))}
    runs = list(runs_of(project).filter(pk__in=_known(each.last_run for each in suites)))
    latest = {row.run.suite_id: row for row in rows(runs)}
    return [_row(suite, newest.get(suite.newest), latest.get(suite.pk)) for suite in suites]


def _known(keys: object) -> list[int]:
    return [key for key in keys if key is not None]  # type: ignore[attr-defined]


def _row(suite: Suite, version: SuiteVersion | None, latest: RunRow | None) -> SuiteRow:
    return SuiteRow(suite, version, getattr(version, "size", 0), latest)


@dataclass(frozen=True)
class ScenarioLine:
    """A scenario of a suite's newest version, with its last trials."""

    scenario: Scenario
    tier: int
    tags: tuple[str, ...]
    gates: int
    judged: bool
    strip: Strip

    @property
    def steadiness(self) -> str:
        return self.strip.rate.steadiness


@dataclass(frozen=True)
class SuitePage:
    """Everything a suite's page shows."""

    suite: Suite
    version: SuiteVersion | None
    lines: list[ScenarioLine]
    versions: list[SuiteVersion]
    guidance: list[Guidance]
    retired: int
    targets: list[Target]
    target: Target | None

    @property
    def classes(self) -> Counter[str]:
        return Counter(line.steadiness for line in self.lines)

    @property
    def tags(self) -> list[tuple[str, int]]:
        return Counter(tag for line in self.lines for tag in line.tags).most_common(8)

    def chosen(self, show: str, tag: str) -> list[ScenarioLine]:
        """Return the lines of a class and a tag; an empty word is any."""
        return [
            line
            for line in self.lines
            if (not show or line.steadiness == show) and (not tag or tag in line.tags)
        ]


def suite_page(suite: Suite, target: str = "") -> SuitePage:
    """Return a suite's newest version, its scenarios' last trials on a target, and its history. Eight queries."""
    versions = list(
        suite.versions.select_related("created_by").annotate(run_count=Count("runs")).order_by("-number")[:30]
    )
    targets = list(Target.objects.filter(runs__suite=suite).distinct())
    chosen = next((each for each in targets if each.name == target), None)
    entries: Sequence[SuiteEntry] = (
        versions[0].entries.select_related("scenario_version__scenario") if versions else ()
    )
    last = strips(suite, target=chosen.pk if chosen else None)
    return SuitePage(
        suite=suite,
        version=versions[0] if versions else None,
        lines=[_line(entry, last) for entry in entries],
        versions=versions,
        guidance=list(suite.guidance.select_related("created_by").annotate(run_count=Count("runs"))[:30]),
        retired=suite.scenarios.filter(retired=True).count(),
        targets=targets,
        target=chosen,
    )


def _line(entry: SuiteEntry, last: dict[int, Strip]) -> ScenarioLine:
    version = entry.scenario_version
    content = version.content
    criteria = content.get("criteria", {})
    return ScenarioLine(
        scenario=version.scenario,
        tier=int(content.get("tier", 0)),
        tags=tuple(content.get("tags", ())),
        gates=len(criteria.get("gates", ())),
        judged=bool(criteria.get("judge")),
        strip=last.get(version.scenario_id, Strip()),
    )


def runnable(project: Project) -> bool:
    """Tell whether there is anything to run it on. One query."""
    return Target.objects.filter(Q(accepted=True), project=project).exists()


def has_runs(project: Project) -> bool:
    """Tell whether anything was ever run. One query."""
    return Run.objects.filter(project=project).exists()
